package wire

import (
	"context"
	"errors"
	"strings"
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
// into the response's result member, or the error into its error member:
// exactly one of them is nil. Errors of the backend that are not the client's
// become a -32603 without details; they are returned as the third value, for
// the host's log.
//
// The owner of the tasks travels in ctx; see durabletasks.WithOwner.
func Dispatch(ctx context.Context, b Backend, method string, params []byte) (Result, *Error, error) {
	r, rpcErr := DecodeRequest(method, params)
	if rpcErr != nil {
		return nil, rpcErr, nil
	}
	result, err := r.serve(ctx, b)
	var shape *ShapeError
	switch {
	case err == nil:
		return result, nil, nil
	case errors.Is(err, ErrTaskNotFound):
		return nil, TaskNotFound(), nil
	case errors.As(err, &shape):
		return nil, invalidParams("%s", strings.TrimPrefix(shape.Error(), "wire: ")), nil
	default:
		return nil, &Error{Code: CodeInternalError, Message: "Internal error"}, err
	}
}

func (r *Request) serve(ctx context.Context, b Backend) (Result, error) {
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
