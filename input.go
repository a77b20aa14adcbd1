package durabletasks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// How a worker asks its client. A question is an input request under a key.
// The record keeps the question itself while it waits for its answer, the
// answer until a checkpoint covers it, and its key and digest for ever:
//
//	asked ──▶ in InputRequests ──answer──▶ in InputResponses ──checkpoint──▶ gone
//	                           ──nobody──▶ JSON null there   ──checkpoint──▶ gone
//
// A worker that runs again may ask what an earlier run asked, and gets what has
// become of it. It never gets the answer to another question.

// InputOptions are the settings of one [Handle.RequestInput]. The zero value
// of a field is its default.
type InputOptions struct {
	// Timeout is how long the client has to answer, counted from the commit
	// that asked the question, across restarts. It is rounded up to whole
	// milliseconds. Zero and [NoLimit] mean no limit.
	Timeout time.Duration
}

// RequestInput asks the client some questions and waits for all the answers:
// the task shows the requests by their keys in [StatusInputRequired] until then
// (tasks.md, "Task Update Requests"). Each request is one of
// elicitation/create, sampling/createMessage or roots/list, with its params.
// Nil opts mean the defaults. [Handle.Confirm], [Handle.Choose] and
// [Handle.Prompt] ask one simple question.
//
// A key stands for one question in a task's lifetime. A second use of a key by
// the same Handle is a [*DuplicateKeyError], even with the same words. A
// worker that runs again after a restart may ask what an earlier run asked,
// byte for byte: RequestInput then waits for the answer, or returns the one
// that the client has given. So a worker that starts over and asks the same
// questions gets the same answers, and the user is not asked twice. Another
// question under a used key is a [*DuplicateKeyError], always. A call that has
// to wait withdraws the open questions that are not its own; a call that only
// returns earlier answers leaves them open.
//
// A checkpoint covers everything before it: a worker that continues from one
// must not ask again what it was answered before. The answers are gone then,
// and the error is a [*DuplicateKeyError]. Without checkpoints all answers
// stay, and count towards the largest record that the store takes.
//
// A question whose time is over, or that [Handle.Withdraw] has withdrawn, no
// longer waits: RequestInput returns the answers that were given, together
// with an [*UnansweredError]. An answer that arrives later is ignored, and a
// later run that asks the same gets the same error. If ctx ends by a deadline
// of its own, the questions that are open are withdrawn too; the error is also
// ctx's cause. If ctx ends for another reason, they stay open for the next run,
// and the error is ctx's cause alone.
//
// Errors: [ErrInvalid] for no requests or a bad option; a [*wire.ShapeError]
// that names the key; [ErrInputPending]; [*UnsupportedInputError];
// [*DuplicateKeyError]; [*UnansweredError]; [ErrTooLarge]; [ErrNotFound];
// [*TerminalError]; [ErrCancelled] if the client has asked to cancel, in which
// case the answers no longer matter; [ErrExpired]; [ErrShutdown]; [ErrClosed];
// [ErrLost]; ctx's cause; the store's own.
func (h *Handle) RequestInput(ctx context.Context, requests map[string]wire.JSON, opts *InputOptions) (map[string]wire.JSON, error) {
	var o InputOptions
	if opts != nil {
		o = *opts
	}
	timeout, err := duration("InputOptions.Timeout", o.Timeout, NoLimit)
	if err != nil {
		return nil, err
	}
	if len(requests) == 0 {
		return nil, fmt.Errorf("%w: no requests", ErrInvalid)
	}
	questions := make(map[string]Question, len(requests))
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		if err := checkText("an input key", key); err != nil {
			return nil, err
		}
		if err := wire.CheckInputRequest(requests[key]); err != nil {
			return nil, withKey(err, key)
		}
		sum := sha256.Sum256([]byte(requests[key].String()))
		questions[key] = Question{Key: key, Digest: [16]byte(sum[:])}
	}
	keys := slices.Sorted(maps.Keys(questions))
	if ctx.Err() != nil && !endedByDeadline(ctx) {
		return nil, context.Cause(ctx)
	}
	t := h.l.local.acquire(h.id)
	defer t.release()
	if !t.startAsking() {
		return nil, ErrInputPending
	}
	defer t.stopAsking()
	changes := newListener() // before the questions are asked, so that no answer is missed
	t.listen(changes)
	defer t.ignore(changes)
	if err := h.errIfAsked(keys); err != nil {
		return nil, err
	}
	if err := h.ask(ctx, requests, questions, timeout); err != nil {
		switch {
		case ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)):
			return nil, err
		case endedByDeadline(ctx):
			return h.askedBefore(ctx, questions)
		}
		return nil, context.Cause(ctx)
	}
	return h.await(ctx, t, changes, keys)
}

// askedBefore is what RequestInput returns if its context ends by its own
// deadline before anything is asked: the answers to what an earlier run asked,
// and what has no answer is withdrawn.
func (h *Handle) askedBefore(ctx context.Context, questions map[string]Question) (map[string]wire.JSON, error) {
	r, err := h.l.get(context.WithoutCancel(ctx), h.id)
	if err != nil {
		return nil, context.Cause(ctx)
	}
	var asked, missing []string
	for key, q := range questions {
		_, open := r.InputRequests[key]
		_, answered := r.InputResponses[key]
		same := slices.ContainsFunc(r.Questions, func(e Question) bool { return e.Key == key && e.Digest == q.Digest })
		if same && (open || answered) {
			asked = append(asked, key)
		} else {
			missing = append(missing, key)
		}
	}
	if len(asked) == 0 {
		return nil, context.Cause(ctx)
	}
	h.mark(&h.asked, asked)
	answers, err := h.giveUp(ctx, asked)
	if err == nil && len(missing) > 0 {
		slices.Sort(missing)
		err = fmt.Errorf("%w: %w", &UnansweredError{Keys: missing}, context.Cause(ctx))
	}
	return answers, err
}

// ask commits the questions that no earlier run has asked. If it leaves any
// question open, so that the call waits, it withdraws the open questions that
// are not this call's.
func (h *Handle) ask(ctx context.Context, requests map[string]wire.JSON, questions map[string]Question, timeout time.Duration) error {
	keys := slices.Sorted(maps.Keys(questions))
	err := h.update(ctx, func(r *Record) (change, error) {
		if r.CancelRequested {
			return nothing, ErrCancelled
		}
		earlier := make(map[string]Question, len(keys))
		for _, q := range r.Questions {
			if _, ok := questions[q.Key]; ok {
				earlier[q.Key] = q
			}
		}
		round := make(map[string]wire.JSON, len(keys))
		what, waits := nothing, false
		for _, key := range keys {
			q, ok := earlier[key]
			request, open := r.InputRequests[key]
			_, answered := r.InputResponses[key]
			switch {
			case ok && q.Digest != questions[key].Digest:
				return nothing, &DuplicateKeyError{Key: key, Reason: keyOfAnother}
			case ok && !open && !answered:
				return nothing, &DuplicateKeyError{Key: key, Reason: keyOfCheckpoint}
			case open:
				round[key] = request
				waits = waits || !answered
			case ok: // answered
			default:
				if kinds := wire.KindsOf(requests[key]) & r.UnsupportedInput; kinds != 0 {
					return nothing, &UnsupportedInputError{Key: key, Kinds: kinds}
				}
				q = questions[key]
				if timeout > 0 {
					q.Deadline = h.l.steadyNow().Add(timeout).Add(time.Millisecond - 1).UTC().Truncate(time.Millisecond)
				}
				r.Questions = append(r.Questions, q)
				round[key] = requests[key]
				what, waits = stamped, true
			}
		}
		// A run that only collects answers may ask the open questions next.
		for key := range unanswered(r) {
			if _, ok := round[key]; waits && !ok {
				withdraw(r, key)
				what = stamped
			}
		}
		if what == stamped {
			r.Status, r.InputRequests = StatusInputRequired, round
			endRound(r)
		}
		return what, nil
	})
	if err == nil {
		h.mark(&h.asked, keys)
	}
	return err
}

// withdraw makes a question of the current round one that nobody answers.
func withdraw(r *Record, key string) {
	if r.InputResponses == nil {
		r.InputResponses = make(map[string]wire.JSON)
	}
	r.InputResponses[key] = noAnswer
}

var noAnswer = wire.MustParse("null")

// endRound makes a task work again if its round has no open question left.
func endRound(r *Record) {
	if len(unanswered(r)) == 0 {
		r.Status = StatusWorking
		r.InputRequests = nil
	}
}

// unanswered returns the requests that wait for an answer.
func unanswered(r *Record) map[string]wire.JSON {
	requests := maps.Clone(r.InputRequests)
	maps.DeleteFunc(requests, func(key string, _ wire.JSON) bool {
		_, answered := r.InputResponses[key]
		return answered
	})
	return requests
}

// openDeadlines returns the deadlines of the open questions that have one, by
// key.
func openDeadlines(r *Record) map[string]time.Time {
	var deadlines map[string]time.Time
	open := unanswered(r)
	for _, q := range r.Questions {
		if _, ok := open[q.Key]; ok && !q.Deadline.IsZero() {
			if deadlines == nil {
				deadlines = make(map[string]time.Time)
			}
			deadlines[q.Key] = q.Deadline
		}
	}
	return deadlines
}

// overdue returns the keys of the deadlines that are over, sorted, and how long
// it is until the next of the others; 0 if there is none.
func (l *TaskLifecycle) overdue(deadlines map[string]time.Time) (keys []string, next time.Duration) {
	for key, deadline := range deadlines {
		if left := deadline.Sub(l.steadyNow()); left <= 0 {
			keys = append(keys, key)
		} else if next == 0 || left < next {
			next = left
		}
	}
	slices.Sort(keys)
	return keys, next
}

// await waits until no question with one of the keys is open. What it reports
// of the task, the task's contexts know before it returns: a worker that
// leaves with that error is settled by their cause.
func (h *Handle) await(ctx context.Context, t *localTask, changes *listener, keys []string) (map[string]wire.JSON, error) {
	l := h.l
	early := false // the clock is behind the timer
	for first := true; ; first = false {
		r, err := l.get(context.WithoutCancel(ctx), h.id)
		if errors.Is(err, ErrNotFound) {
			l.expire(t, err)
			return nil, ErrExpired
		}
		if err != nil {
			return nil, err
		}
		answers, err := answersTo(&r, keys)
		if answers != nil {
			h.mark(&h.taken, keys)
			return answers, err
		}
		if err != nil {
			l.apply(t, &r, 0)
			return nil, err
		}
		if first {
			l.armExpiry(t, &r, 0)
		}
		overdue, left := l.overdue(openDeadlines(&r)) // all that is open is this call's
		if len(overdue) > 0 {
			early = false
			if err := h.withdrawOpen(context.WithoutCancel(ctx), overdue); err != nil {
				return nil, whileWaiting(err)
			}
			continue
		}
		var due <-chan time.Time
		if left > 0 {
			if early {
				left = max(left, refreshDelay) // a clock that stands still keeps nobody busy
			}
			due = time.After(left)
		}
		select {
		case <-changes.ready:
			early = false
		case <-due:
			early = true
		case <-ctx.Done():
			if endedByDeadline(ctx) {
				return h.giveUp(ctx, keys)
			}
			return nil, context.Cause(ctx)
		case <-l.workers.draining():
			t.interrupt(ErrShutdown)
			return nil, ErrShutdown
		case <-l.life.Done():
			t.endContexts(ErrClosed)
			return nil, ErrClosed
		}
	}
}

// giveUp withdraws what is still open when ctx has ended by its own deadline.
// An answer that came in time is returned all the same.
func (h *Handle) giveUp(ctx context.Context, keys []string) (map[string]wire.JSON, error) {
	late := context.WithoutCancel(ctx)
	if err := h.withdrawOpen(late, keys); isOver(err) {
		return nil, whileWaiting(err)
	} else if err != nil {
		return nil, fmt.Errorf("%w, and its questions stay open: %w", context.Cause(ctx), err)
	}
	r, err := h.l.get(late, h.id)
	if err != nil {
		return nil, whileWaiting(err)
	}
	answers, err := answersTo(&r, keys)
	if answers != nil {
		h.mark(&h.taken, keys)
	}
	if errors.Is(err, ErrUnanswered) {
		err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
	}
	return answers, err
}

// whileWaiting returns the error for a call that waits when err is why the task
// could not be read or changed: a task that was there is gone because it has
// expired.
func whileWaiting(err error) error {
	if errors.Is(err, ErrNotFound) {
		return ErrExpired
	}
	return err
}

// answersTo returns the answers to the questions with these keys, with an
// [*UnansweredError] if some were not answered. It returns neither answers nor
// an error while some are open, and an error alone if there will be no answers.
func answersTo(r *Record, keys []string) (map[string]wire.JSON, error) {
	if err := errIfEnded(r); err != nil {
		return nil, err
	}
	if r.CancelRequested {
		return nil, ErrCancelled
	}
	answers := make(map[string]wire.JSON, len(keys))
	var open, withdrawn []string
	for _, key := range keys {
		answer, answered := r.InputResponses[key]
		_, asked := r.InputRequests[key]
		switch {
		case answer == noAnswer:
			withdrawn = append(withdrawn, key)
		case answered:
			answers[key] = answer
		case asked:
			open = append(open, key)
		default: // another worker has saved a checkpoint
			return nil, ErrLost
		}
	}
	switch {
	case len(open) > 0:
		return nil, nil
	case len(withdrawn) > 0:
		return answers, &UnansweredError{Keys: withdrawn}
	}
	return answers, nil
}

// Withdraw withdraws questions that wait for an answer: the client no longer
// sees them, and the RequestInput that waits for them returns an
// [*UnansweredError]. No keys mean all questions of the task. A key that
// does not wait is ignored. The task works again when no question is left.
//
// Errors: [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's
// own.
func (h *Handle) Withdraw(ctx context.Context, keys ...string) error {
	return h.withdrawOpen(ctx, keys)
}

// withdrawOpen withdraws those of the questions that are open; all that are if
// keys is empty.
func (h *Handle) withdrawOpen(ctx context.Context, keys []string) error {
	return h.update(ctx, func(r *Record) (change, error) {
		what := nothing
		for key := range unanswered(r) {
			if len(keys) == 0 || slices.Contains(keys, key) {
				withdraw(r, key)
				what = stamped
			}
		}
		if what == stamped {
			endRound(r)
		}
		return what, nil
	})
}

// errIfAsked refuses a key that this run has used.
func (h *Handle) errIfAsked(keys []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		if _, ok := h.asked[key]; ok {
			return &DuplicateKeyError{Key: key, Reason: keyUsedByThisRun}
		}
	}
	return nil
}

// mark adds keys to one of the handle's sets.
func (h *Handle) mark(set *map[string]struct{}, keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if *set == nil {
		*set = make(map[string]struct{}, len(keys))
	}
	for _, key := range keys {
		(*set)[key] = struct{}{}
	}
}

// Confirm asks the user a yes-or-no question under a key, with
// [Handle.RequestInput]. It returns true only for a yes: false if the user says
// no, declines or dismisses the question. The form has one field, the boolean
// "confirm".
//
// Errors: those of RequestInput; a [*wire.ShapeError] if the user accepted
// without saying yes or no.
func (h *Handle) Confirm(ctx context.Context, key, message string) (bool, error) {
	answer, err := h.askForm(ctx, key, message, wire.Field{Name: "confirm", Title: "Yes", Schema: wire.BooleanSchema{}})
	if errors.Is(err, ErrDeclined) {
		return false, nil
	}
	yes, _ := answer.Bool("confirm")
	return yes, err
}

// Choose asks the user under a key to choose one of some options, and returns
// the Value of the chosen one. [wire.Options] makes options of plain texts. The
// form has one field, "choice". A worker that asks again after an answer that is
// none of the options needs another key.
//
// Errors: those of [Handle.RequestInput]; [ErrDeclined]; a [*wire.ShapeError],
// which names the options, if the answer is none of them.
func (h *Handle) Choose(ctx context.Context, key, message string, options ...wire.Option) (string, error) {
	answer, err := h.askForm(ctx, key, message, wire.Field{Name: "choice", Title: "Choice", Schema: wire.SingleSelectSchema{Options: options}})
	choice, _ := answer.Text("choice")
	return choice, err
}

// Prompt asks the user under a key for a line of text. The form has one field,
// "text".
//
// Errors: those of [Handle.RequestInput]; [ErrDeclined]; a [*wire.ShapeError]
// if the answer is no text.
func (h *Handle) Prompt(ctx context.Context, key, message string) (string, error) {
	answer, err := h.askForm(ctx, key, message, wire.Field{Name: "text", Title: "Answer", Schema: wire.StringSchema{}})
	text, _ := answer.Text("text")
	return text, err
}

// askForm asks with a form of one required field, and checks the answer.
func (h *Handle) askForm(ctx context.Context, key, message string, field wire.Field) (wire.ElicitResult, error) {
	field.Required = true
	form := wire.FormRequest{Message: message, Fields: []wire.Field{field}}
	request, err := form.JSON()
	if err != nil {
		return wire.ElicitResult{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	answers, err := h.RequestInput(ctx, map[string]wire.JSON{key: request}, nil)
	if err != nil {
		return wire.ElicitResult{}, err
	}
	answer := wire.ElicitResult(answers[key])
	if !answer.Accepted() {
		return wire.ElicitResult{}, ErrDeclined
	}
	if err := form.Check(answer); err != nil {
		return wire.ElicitResult{}, withKey(err, key)
	}
	return answer, nil
}
