package storetest

import (
	"context"
	"maps"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var aliasChecks = []check{
	{"S07", "record-given-to-create", 0, aliasOfCreate},
	{"S07", "record-given-to-update", 0, aliasOfUpdate},
	{"S07", "record-returned-by-get", 0, aliasOfGet},
	{"S07", "record-returned-by-update", 0, aliasOfResult},
}

// scribble writes into everything that a record shares with its copies.
func scribble(r durabletasks.Record) {
	for _, m := range []map[string]wire.JSON{r.InputRequests, r.InputResponses} {
		for key := range maps.Clone(m) {
			m[key] = wire.MustParse(`"scribbled"`)
		}
		if m != nil {
			delete(m, "name")
			m["scribbled"] = wire.MustParse("true")
		}
	}
	keys := r.UsedInputKeys[:cap(r.UsedInputKeys)]
	for i := range keys {
		keys[i] = "scribbled"
	}
}

// roomy returns a full record whose slice has room to grow in place.
func (t *trial) roomy(id string, n int) durabletasks.Record {
	r := t.full(id, n)
	r.UsedInputKeys = append(make([]string, 0, 16), r.UsedInputKeys...)
	return r
}

func aliasOfCreate(t *trial) {
	r := t.roomy("task", 0)
	t.create(r)
	scribble(r)
	t.stored(t.full("task", 0), "after its owner wrote into the record given to Create")
}

func aliasOfUpdate(t *trial) {
	t.create(t.record("task"))
	r := t.roomy("task", 1)
	t.update(r, 0)
	scribble(r)
	want := t.full("task", 1)
	want.Version = 1
	t.stored(want, "after its owner wrote into the record given to Update")
}

func aliasOfGet(t *trial) {
	t.create(t.full("task", 2))
	first, second := t.get("task"), t.get("task")
	scribble(first)
	t.same(second, t.full("task", 2), "as read before somebody wrote into another copy that Get returned")
	t.stored(t.full("task", 2), "after somebody wrote into a record that Get returned")
	scribble(second)
	t.stored(t.full("task", 2), "after somebody wrote into a record that Get returned")
}

func aliasOfResult(t *trial) {
	t.create(t.record("task"))
	returned := t.update(t.full("task", 3), 0)
	scribble(returned)
	want := t.full("task", 3)
	want.Version = 1
	t.stored(want, "after somebody wrote into the record that Update returned")

	// A conflict may carry the stored record on its way out, against S16.
	next := t.full("task", 4)
	conflicting, err := t.store.Update(context.Background(), next, 0)
	t.conflicts(err, "Update from version 0 of a task at version 1")
	scribble(conflicting)
	scribble(next)
	t.stored(want, "after somebody wrote into what a refused Update took and returned")
}
