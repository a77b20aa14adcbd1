package storetest

import (
	"context"
	"maps"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var aliasChecks = []check{
	{"S07", "record-passed-to-create", 0, aliasOfCreate},
	{"S07", "record-passed-to-update", 0, aliasOfUpdate},
	{"S07", "record-returned-by-get", 0, aliasOfGet},
	{"S07", "arguments-are-not-changed", 0, argumentsAreUnchanged},
}

// scribble overwrites everything that a record shares with its shallow copies.
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
	questions := r.Questions[:cap(r.Questions)]
	for i := range questions {
		questions[i].Key = "scribbled"
	}
}

// roomy returns a full record whose slice has room to grow in place.
func (t *trial) roomy(id string, n int) durabletasks.Record {
	r := t.full(id, n)
	r.Questions = append(make([]durabletasks.Question, 0, 16), r.Questions...)
	return r
}

func aliasOfCreate(t *trial) {
	r := t.roomy("task", 0)
	t.create(r)
	scribble(r)
	t.stored(t.full("task", 0), "after the caller wrote to the record passed to Create")
}

func aliasOfUpdate(t *trial) {
	t.create(t.record("task"))
	r := t.roomy("task", 1)
	t.update(r)
	scribble(r)
	want := at(1, t.full("task", 1))
	t.stored(want, "after the caller wrote to the record passed to Update")
}

func aliasOfGet(t *trial) {
	t.create(t.full("task", 2))
	first, second := t.get("task"), t.get("task")
	scribble(first)
	t.same(second, t.full("task", 2), "as returned before the caller wrote to another copy that Get had returned")
	t.stored(t.full("task", 2), "after the caller wrote to a record that Get returned")
	scribble(second)
	t.stored(t.full("task", 2), "after the caller wrote to a record that Get returned")
}

// argumentsAreUnchanged is for stores that sort, merge or append in place. A
// caller whose call fails builds its next one from the same record.
func argumentsAreUnchanged(t *trial) {
	unchanged := func(got, want durabletasks.Record, call string) {
		d := diff(got, want)
		if spare := got.Questions[:cap(got.Questions)]; d == "" && spare[len(got.Questions)] != (durabletasks.Question{}) {
			d = "it wrote beyond the length of Questions"
		}
		if d != "" {
			t.fatalf("%s changed the record that was passed to it: %s", call, d)
		}
	}
	r := t.roomy("task", 0)
	t.create(r)
	unchanged(r, t.full("task", 0), "Create")
	_ = t.store.Create(context.Background(), r) // its error is for other checks
	unchanged(r, t.full("task", 0), "Create with an id that is taken")
	r = t.roomy("task", 1)
	t.update(r)
	unchanged(r, t.full("task", 1), "Update")
	r = t.roomy("task", 2)
	_ = t.store.Update(context.Background(), r)
	unchanged(r, t.full("task", 2), "Update from a version that is not the stored one")
}
