// Package failurelog decides where the library logs when its user has set no
// logger.
package failurelog

import (
	"context"
	"log/slog"
)

// Or returns logger. If that is nil, it returns a logger that passes errors,
// and nothing below them, to [slog.Default] as it is at the time: a failure
// that no caller is told of is never silent. slog.Default writes to stderr
// unless the program says otherwise, never to stdout, which carries the
// protocol on stdio.
func Or(logger *slog.Logger) *slog.Logger {
	if logger != nil {
		return logger
	}
	return slog.New(errorsOnly{func() slog.Handler { return slog.Default().Handler() }})
}

type errorsOnly struct{ to func() slog.Handler }

func (h errorsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.to().Enabled(ctx, level)
}

func (h errorsOnly) Handle(ctx context.Context, r slog.Record) error { return h.to().Handle(ctx, r) }

func (h errorsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return errorsOnly{func() slog.Handler { return h.to().WithAttrs(attrs) }}
}

func (h errorsOnly) WithGroup(name string) slog.Handler {
	return errorsOnly{func() slog.Handler { return h.to().WithGroup(name) }}
}
