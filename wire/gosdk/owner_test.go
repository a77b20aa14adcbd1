package gosdk_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// To anybody but its owner a task does not exist, to the byte.
func TestTasksBelongToTheBearer(t *testing.T) {
	h := withGreeter(t)
	bearer := auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)
	url := h.listen(t, bearer)
	as := func(user, text string) wire.JSON {
		return post(t, url, text, func(header http.Header) { header.Set("Authorization", "Bearer "+user) }).body
	}
	id := created(t, as("alice", toolCall("greet", `{"name":"Ada"}`)))
	if r := result(t, as("alice", taskRequest(wire.MethodGet, id))); r.Get("taskId").IsZero() {
		t.Errorf("alice sees %s", r)
	}
	for _, user := range []string{"bob", "Alice"} {
		for _, text := range []string{taskRequest(wire.MethodGet, id), taskRequest(wire.MethodCancel, id), update(id, `{"title":{"action":"decline"}}`)} {
			if got := as(user, text).Get("error").String(); got != `{"code":-32602,"message":"Task not found"}` {
				t.Errorf("%s gets %s", user, got)
			}
		}
	}
	alice := durabletasks.WithOwner(t.Context(), "alice")
	task, err := h.tasks.GetTask(alice, id)
	if err != nil || task.Status.Terminal() {
		t.Errorf("afterwards: %v %v", task.Status, err)
	}
}

func TestOwnerHook(t *testing.T) {
	owner := "alice"
	h := newHost(t, &gosdk.Options{Owner: func(_ context.Context, req mcp.Request) string {
		if req.GetParams().GetMeta() == nil {
			t.Error("the hook is given a request without _meta")
		}
		if owner == "" {
			panic("no owner")
		}
		return owner
	}})
	addTaskTool(h.adapter, &mcp.Tool{Name: "work"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
		return text("done"), nil
	}, nil)
	c := h.inMemory(t)
	id := created(t, c(t, toolCall("work", `{}`)))
	result(t, c(t, taskRequest(wire.MethodGet, id)))
	owner = "bob"
	wantError(t, c(t, taskRequest(wire.MethodGet, id)), wire.CodeInvalidParams)
	owner = "" // the hook fails: nobody is let in
	wantError(t, c(t, taskRequest(wire.MethodGet, id)), wire.CodeInternalError)
	wantError(t, c(t, toolCall("work", `{}`)), wire.CodeInternalError)
}
