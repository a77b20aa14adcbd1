package durabletasks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func newEngine(t *testing.T, opts *durabletasks.Options) *durabletasks.TaskLifecycle {
	t.Helper()
	l, err := durabletasks.New(&durabletasks.MemStore{}, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

var form = wire.MustParse(`{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`)
var accept = wire.MustParse(`{"action":"accept","content":{"name":"Ada"}}`)

func TestInputRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		l := newEngine(t, nil)
		c, err := l.Start(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			a, err := h.RequestInput(ctx, map[string]wire.JSON{"a": form, "b": form})
			if err != nil {
				return wire.JSON{}, err
			}
			if len(a) != 2 {
				return wire.JSON{}, errors.New("not two")
			}
			return wire.MustParse(`{"content":[]}`), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		v, err := l.GetTask(ctx, c.TaskID)
		if err != nil || v.Status != "input_required" || len(v.InputRequests) != 2 {
			t.Fatal(v, err)
		}
		ign, err := l.UpdateTask(ctx, c.TaskID, map[string]wire.JSON{"a": accept, "x": form})
		if err != nil || len(ign) != 1 {
			t.Fatal(ign, err)
		}
		v, err = l.GetTask(ctx, c.TaskID)
		if err != nil || len(v.InputRequests) != 1 {
			t.Fatal(v, err)
		}
		if _, err = l.UpdateTask(ctx, c.TaskID, map[string]wire.JSON{"b": accept}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		v, err = l.GetTask(ctx, c.TaskID)
		if err != nil || v.Status != "completed" {
			t.Fatal(v, err)
		}
		time.Sleep(2 * time.Hour)
		if _, err = l.GetTask(ctx, c.TaskID); !errors.Is(err, durabletasks.ErrNotFound) {
			t.Fatal(err)
		}
		l.Close()
	})
}
