package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// benchResults are tool results: a short one, a long text, and a text made of
// many small values.
func benchResults() []struct{ name, text string } {
	result := func(structured string) string {
		return `{"resultType":"complete","content":[{"type":"text","text":"done"}],"structuredContent":` + structured + `}`
	}
	const size = 8 << 20
	const line = "2026-07-28T12:00:00Z crawled https://example.com/page/7 in 120 ms\\n"
	const row = `{"id":9007199254740993,"url":"https://example.com/page/7","ok":true,"ms":[120,1.5]},`
	return []struct{ name, text string }{
		{"small", result(`{"pages":7}`)},
		{"8MiB-text", result(`{"log":"` + strings.Repeat(line, size/len(line)) + `"}`)},
		{"8MiB-rows", result(`[` + strings.Repeat(row, size/len(row)) + `{}]`)},
	}
}

func BenchmarkParseJSON(b *testing.B) {
	for _, r := range benchResults() {
		text := []byte(r.text)
		b.Run("result="+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.ParseJSON(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParseJSONPeer does with encoding/json the part of ParseJSON's work
// that it can do: check the grammar and compact the text. It lets invalid
// UTF-8, duplicate members and any depth below 10,000 pass.
func BenchmarkParseJSONPeer(b *testing.B) {
	for _, r := range benchResults() {
		text := []byte(r.text)
		b.Run("result="+r.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var buf bytes.Buffer
				if err := json.Compact(&buf, text); err != nil {
					b.Fatal(err)
				}
				_ = buf.String()
			}
		})
	}
}

func benchView(text string) wire.GetTaskResult {
	created := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	return wire.GetTaskResult{Task: wire.Task{
		TaskID: "786512e2-9e0d-44bd-8f29-789f320fe840", Status: wire.StatusCompleted, StatusMessage: "7 pages",
		CreatedAt: created, LastUpdatedAt: created, TTL: time.Hour, PollInterval: time.Second, Result: wire.MustParse(text),
	}}
}

// BenchmarkGetTaskResult encodes the answer to one poll of a completed task.
func BenchmarkGetTaskResult(b *testing.B) {
	for _, r := range benchResults() {
		view := benchView(r.text)
		b.Run("AppendJSON/result="+r.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = view.AppendJSON(buf[:0])
			}
			b.SetBytes(int64(len(buf)))
		})
		b.Run("WriteTo/result="+r.name, func(b *testing.B) {
			b.ReportAllocs()
			var n int64
			for b.Loop() {
				var err error
				if n, err = view.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(n)
		})
	}
}

// BenchmarkGetTaskResultPeer encodes the same answer as a struct with a
// json.RawMessage, which encoding/json scans and copies at each poll.
func BenchmarkGetTaskResultPeer(b *testing.B) {
	for _, r := range benchResults() {
		view := benchView(r.text)
		peer := struct {
			ResultType     string          `json:"resultType"`
			TaskID         string          `json:"taskId"`
			Status         wire.Status     `json:"status"`
			StatusMessage  string          `json:"statusMessage,omitempty"`
			CreatedAt      time.Time       `json:"createdAt"`
			LastUpdatedAt  time.Time       `json:"lastUpdatedAt"`
			TTLMs          *int64          `json:"ttlMs"`
			PollIntervalMs int64           `json:"pollIntervalMs,omitempty"`
			Result         json.RawMessage `json:"result,omitempty"`
		}{"complete", view.TaskID, view.Status, view.StatusMessage, view.CreatedAt, view.LastUpdatedAt, ptr(view.TTL.Milliseconds()), view.PollInterval.Milliseconds(), json.RawMessage(r.text)}
		b.Run("Marshal/result="+r.name, func(b *testing.B) {
			b.ReportAllocs()
			var text []byte
			for b.Loop() {
				var err error
				if text, err = json.Marshal(peer); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(text)))
		})
	}
}

// BenchmarkCheckInputResponse checks answers as they come in.
func BenchmarkCheckInputResponse(b *testing.B) {
	image := strings.Repeat("aGVsbG8h", 1<<20)
	for _, r := range []struct{ name, request, answer string }{
		{"form", formRequest, `{"action":"accept","content":{"s":"x","n":1,"b":true,"m":["x"]}}`},
		{"image-8MiB", samplingRequest, `{"role":"assistant","model":"m","content":{"type":"image","mimeType":"image/png","data":"` + image + `"}}`},
	} {
		request, answer := wire.MustParse(r.request), wire.MustParse(r.answer)
		b.Run("answer="+r.name, func(b *testing.B) {
			b.SetBytes(int64(answer.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if err := wire.CheckInputResponse(request, answer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDispatch serves requests with a backend that does nothing.
func BenchmarkDispatch(b *testing.B) {
	for _, r := range []struct{ name, method, params string }{
		{"get", wire.MethodGet, `{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840",` + meta + `}`},
		{"update", wire.MethodUpdate, `{"taskId":"786512e2-9e0d-44bd-8f29-789f320fe840","inputResponses":{"k":{"action":"accept","content":{"name":"Ada"}}},` + meta + `}`},
	} {
		params := []byte(r.params)
		b.Run(r.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Dispatch(b.Context(), new(recorder), r.method, params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecode decodes into structs, with every name as it is expected.
func BenchmarkDecode(b *testing.B) {
	for _, d := range benchDocuments() {
		value := wire.MustParse(d.text)
		b.Run("value="+d.name, func(b *testing.B) {
			b.SetBytes(int64(value.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if err := value.Decode(d.into()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecodePeer does the same with encoding/json alone, which matches
// names in any case.
func BenchmarkDecodePeer(b *testing.B) {
	for _, d := range benchDocuments() {
		value := wire.MustParse(d.text)
		b.Run("value="+d.name, func(b *testing.B) {
			b.SetBytes(int64(value.Len()))
			b.ReportAllocs()
			for b.Loop() {
				dec := json.NewDecoder(strings.NewReader(value.String()))
				dec.UseNumber()
				if err := dec.Decode(d.into()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchDocuments() []struct {
	name, text string
	into       func() any
} {
	type form struct {
		To     string   `json:"to"`
		Copies int      `json:"copies"`
		Parts  []string `json:"parts"`
		Urgent bool     `json:"urgent"`
	}
	type row struct {
		ID  int64     `json:"id"`
		URL string    `json:"url"`
		OK  bool      `json:"ok"`
		MS  []float64 `json:"ms"`
	}
	const size = 1 << 20
	const line = `{"id":9007199254740993,"url":"https://example.com/page/7","ok":true,"ms":[120,1.5]},`
	return []struct {
		name, text string
		into       func() any
	}{
		{"form", `{"to":"ada@example.com","copies":2,"parts":["summary","tables"],"urgent":true}`, func() any { return new(form) }},
		{"1MiB-rows", `[` + strings.Repeat(line, size/len(line)) + `{}]`, func() any { return new([]row) }},
		{"1MiB-any", `[` + strings.Repeat(line, size/len(line)) + `{}]`, func() any { return new(any) }},
	}
}
