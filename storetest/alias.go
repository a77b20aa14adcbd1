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
	{"S07", "arguments-are-left-as-they-are", 0, argumentsAreLeft},
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
	t.stored(t.full("task", 0), "after its owner wrote into the record given to Create")
}

func aliasOfUpdate(t *trial) {
	t.create(t.record("task"))
	r := t.roomy("task", 1)
	t.update(r)
	scribble(r)
	want := at(1, t.full("task", 1))
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

// argumentsAreLeft is for stores that sort, merge or append in place. The caller
// of a call that fails builds its next try from the same record.
func argumentsAreLeft(t *trial) {
	left := func(got, want durabletasks.Record, call string) {
		d := diff(got, want)
		if spare := got.Questions[:cap(got.Questions)]; d == "" && spare[len(got.Questions)] != (durabletasks.Question{}) {
			d = "Questions was appended to in place"
		}
		if d != "" {
			t.fatalf("%s changed the record that it was given: %s", call, d)
		}
	}
	r := t.roomy("task", 0)
	t.create(r)
	left(r, t.full("task", 0), "Create")
	_ = t.store.Create(context.Background(), r) // other checks want its error
	left(r, t.full("task", 0), "Create with an id that is taken")
	r = t.roomy("task", 1)
	t.update(r)
	left(r, t.full("task", 1), "Update")
	r = t.roomy("task", 2)
	_ = t.store.Update(context.Background(), r)
	left(r, t.full("task", 2), "Update from a version that is not the stored one")
}
