package wire

import (
	"context"
	"errors"
)

// Backend is what the dispatcher serves; *durabletasks.TaskLifecycle is one.
// A task that is unknown, expired, or not visible to the caller that ctx
// carries is an error that wraps [ErrTaskNotFound].
type Backend interface {
	GetTask(ctx context.Context, taskID string) (Task, error)
	// UpdateTask delivers answers and returns the keys that it ignored. An
	// answer with a wrong shape is a [*ShapeError], and nothing is changed.
	UpdateTask(ctx context.Context, taskID string, inputResponses map[string]JSON) (ignored []string, err error)
	CancelTask(ctx context.Context, taskID string) error
}

// Dispatch serves one request for a task, from its method and the text of its
// params, whatever the transport that brought it. The result is what belongs
// into the response's result member. An error is always an [*Error], for the
// response's error member. A failure of the backend that the client cannot
// act on is a -32603 without details; [errors.Unwrap] returns its cause, for
// the host's log.
//
// The owner of the tasks travels in ctx; see durabletasks.WithOwner.
func Dispatch(ctx context.Context, b Backend, method string, params []byte) (Result, error) {
	r, err := decodeRequest(method, params)
	if err != nil {
		return nil, err
	}
	result, err := r.serve(ctx, b)
	var shape *ShapeError
	var known *Error
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, ErrTaskNotFound):
		return nil, errTaskNotFound()
	case errors.As(err, &shape):
		return nil, invalidParams("%v", shape)
	case errors.As(err, &known):
		return nil, known
	default:
		return nil, &Error{Code: CodeInternalError, Message: "Internal error", cause: err}
	}
}

func (r *request) serve(ctx context.Context, b Backend) (Result, error) {
	switch r.Method {
	case MethodGet:
		task, err := b.GetTask(ctx, r.TaskID)
		return GetTaskResult{task}, err
	case MethodUpdate:
		_, err := b.UpdateTask(ctx, r.TaskID, r.InputResponses)
		return UpdateTaskResult{}, err
	default: // MethodCancel: DecodeRequest knows no other
		return CancelTaskResult{}, b.CancelTask(ctx, r.TaskID)
	}
}
