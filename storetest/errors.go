package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var errorChecks = []check{
	{"S03", "unknown-and-expired-have-one-error", 0, haveOneError},

	{"S16", "errors-reveal-nothing", 0, errorsRevealNothing},
	{"S16", "get-with-an-error-returns-a-zero-record", 0, zeroWithError},
}

// secret is what no error may contain.
const secret = "5ecret"

// revealing returns a record with the secret in every text.
func (t *trial) revealing(id string) durabletasks.Record {
	r := t.full(id+" "+secret, 1)
	r.StatusMessage, r.Owner, r.Tool = "message "+secret, "owner "+secret, "tool "+secret
	r.InputRequests = map[string]wire.JSON{"key " + secret: text("request " + secret)}
	r.InputResponses = map[string]wire.JSON{"key " + secret: text("response " + secret)}
	r.Questions = questions("key " + secret)
	r.Result, r.Error = text("result "+secret), text("error "+secret)
	r.Payload, r.Checkpoint = text("payload "+secret), text("checkpoint "+secret)
	return r
}

// provoke makes calls that must fail, for every reason in the contract, and
// passes what each returned to failed. Whether they fail is for other checks. It
// closes the store.
func (t *trial) provoke(failed func(call string, got durabletasks.Record, err error)) {
	r, expired, unknown := t.revealing("task"), t.revealing("expired"), t.revealing("unknown")
	expired.CreatedAt, expired.TTL = expired.CreatedAt.Add(-2*time.Hour), time.Hour
	note := func(call string, got durabletasks.Record, err error) {
		if err != nil {
			failed(call, got, err)
		}
	}
	create := func(ctx context.Context, r durabletasks.Record, kind string) {
		note("Create "+kind, durabletasks.Record{}, t.store.Create(ctx, r))
	}
	get := func(ctx context.Context, r durabletasks.Record, kind string) {
		got, err := t.store.Get(ctx, r.ID)
		note("Get "+kind, got, err)
	}
	update := func(ctx context.Context, r durabletasks.Record, kind string) {
		note("Update "+kind, durabletasks.Record{}, t.store.Update(ctx, r))
	}
	others := func(ctx context.Context, kind string) {
		_, err := t.store.Sweep(ctx, t.began)
		note("Sweep "+kind, durabletasks.Record{}, err)
		if t.store.scanner != nil {
			err := t.store.Scan(ctx, func(durabletasks.Record) bool { return true })
			note("Scan "+kind, durabletasks.Record{}, err)
		}
	}
	background := context.Background()
	create(background, r, "of a new task")
	create(background, expired, "of an expired task")
	create(background, r, "with an id that is taken")
	get(background, unknown, "of an unknown task")
	get(background, expired, "of an expired task")
	update(background, unknown, "of an unknown task")
	update(background, expired, "of an expired task")
	update(background, at(7, r), "from a version that is not the stored one")
	t.done(func(done context.Context, _ error, kind string) {
		create(done, unknown, "with "+kind)
		get(done, r, "with "+kind)
		update(done, r, "with "+kind)
		others(done, "with "+kind)
	})
	note("Close", durabletasks.Record{}, t.store.Close())
	create(background, unknown, "after Close")
	get(background, r, "after Close")
	update(background, r, "after Close")
	others(background, "after Close")
}

func haveOneError(t *trial) {
	texts := make(map[string]string)
	t.provoke(func(call string, _ durabletasks.Record, err error) {
		if errors.Is(err, durabletasks.ErrNotFound) {
			texts[call] = err.Error()
		}
	})
	for _, method := range []string{"Get", "Update"} {
		unknown, expired := texts[method+" of an unknown task"], texts[method+" of an expired task"]
		if unknown != expired && unknown != "" && expired != "" {
			t.fatalf("%s: the error for an unknown task is %q, and for an expired task %q; a caller must not see a difference", method, unknown, expired)
		}
	}
}

func errorsRevealNothing(t *trial) {
	t.provoke(func(call string, _ durabletasks.Record, err error) {
		if text := err.Error(); strings.Contains(text, secret) {
			t.errorf("%s: the error %q contains the text %q, which is part of the record", call, text, secret)
		}
	})
}

func zeroWithError(t *trial) {
	t.provoke(func(call string, got durabletasks.Record, err error) {
		if d := diff(got, durabletasks.Record{}); d != "" {
			t.errorf("%s returned a record with its error, want a zero Record: %s", call, d)
		}
	})
}
