package wire

import (
	"context"
	"errors"
)

// A Backend holds the tasks that [Dispatch] serves. *durabletasks.TaskLifecycle
// is one.
//
// A method returns an error that wraps [ErrTaskNotFound] for a task that is
// unknown, expired, or not visible to the caller that ctx carries. It may
// return an [*Error] for the client to see. A Backend must be safe for
// concurrent use if Dispatch is called concurrently.
type Backend interface {
	// GetTask returns the task as it is now.
	GetTask(ctx context.Context, taskID string) (Task, error)
	// UpdateTask delivers answers and returns the keys that it ignored. If an
	// answer has a wrong shape, it returns an error that wraps a
	// [*ShapeError], and changes nothing.
	UpdateTask(ctx context.Context, taskID string, inputResponses map[string]JSON) (ignored []string, err error)
	// CancelTask asks the task to stop.
	CancelTask(ctx context.Context, taskID string) error
}

// Dispatch serves one tasks/get, tasks/update or tasks/cancel request, given its
// method and the text of its params. It returns the result member of the
// response, or an error that is always an [*Error], the error member of the
// response.
//
// Dispatch checks a request completely before it calls b: the method (-32601),
// the syntax of the params (-32602), the protocol version (-32022), the
// declared extension (-32021), the members of the params (-32602). A failure of
// b that the client cannot act on becomes a -32603 error without details, and
// [errors.Unwrap] returns its cause for the host's log. No message quotes the
// request.
//
// ctx carries the owner of the tasks; see durabletasks.WithOwner.
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
	default: // MethodCancel: decodeRequest accepts no other
		return CancelTaskResult{}, b.CancelTask(ctx, r.TaskID)
	}
}
