package failurelog_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/internal/failurelog"
)

func TestOr(t *testing.T) {
	given := slog.New(slog.DiscardHandler)
	if failurelog.Or(given) != given {
		t.Error("a logger that is set is not returned")
	}
	log := failurelog.Or(nil).With("package", "x").WithGroup("g")
	var out strings.Builder
	old := slog.Default()
	defer slog.SetDefault(old)
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.Info("quiet")
	log.Warn("quiet")
	log.Error("loud", "key", 1)
	if got := out.String(); !strings.Contains(got, "msg=loud package=x g.key=1") || strings.Contains(got, "quiet") {
		t.Errorf("logged %q", got)
	}
}
