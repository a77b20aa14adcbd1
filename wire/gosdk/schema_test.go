package gosdk

import (
	"context"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func TestInteger(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e9999999999": "0", "-0.00e-5": "0",
		"7": "7", "-7": "-7", "1e3": "1000", "1.50e1": "15", "-12.3400e2": "-1234", "100": "100", "100e-2": "1", "0.001e3": "1",
		"9007199254740993": "9007199254740993", "12345678901234567890.0": "12345678901234567890",
		"1.5": "", "1e-1": "", "12.34e1": "", "0.99999999999999999999": "", "1e400": "", "1e-400": "", "1e99999999999999999999": "", "1e-99999999999999999999": "",
	} {
		i := integer(json.Number(text))
		if got := i; want == "" && got != nil || want != "" && (got == nil || got.String() != want) {
			t.Errorf("integer(%s) = %v, want %q", text, i, want)
		}
	}
	if want, _ := new(big.Int).SetString("1"+strings.Repeat("0", 308), 10); integer("1e308").Cmp(want) != 0 {
		t.Error("1e308")
	}
}

// What a client writes is looked at in time linear in its length: four
// megabytes of digits took a processor for most of a minute once.
func TestLongNumbersAreCheap(t *testing.T) {
	s, _, err := newSchema(nil, reflect.TypeFor[struct {
		X float64 `json:"x"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	many := strings.Repeat("7", 4<<20)
	for _, number := range []string{"1." + many + "1", many, many + "e-4000000", "0." + many + "e4194304"} {
		v := wire.MustParse(`{"x":` + number + `}`)
		start := time.Now()
		_, _ = s.apply(v) // whether it fits is not the point
		contentOf(v)
		if took := time.Since(start); took > 8*time.Second {
			t.Errorf("%.20s...: %v", number, took)
		}
	}
}

// A number must fit the schema as the value that the handler gets.
func TestBoundsHoldForWhatIsDecoded(t *testing.T) {
	for declared, row := range map[string]struct{ fits, not []string }{
		`{"type":"number","exclusiveMaximum":1}`: {[]string{"0.5", "0.9999999999999999"}, []string{"1", "1.0", "0.99999999999999999999", "1.00000000000000000001", "10e-1"}},
		`{"type":"number","minimum":1}`:          {[]string{"1", "1.00000000000000000001"}, []string{"0.9"}},
		`{"type":"integer"}`:                     {[]string{"1", "1.0", "1e2", "9007199254740993"}, []string{"1.5", "0.99999999999999999999", "1.00000000000000000001"}},
	} {
		s, _, err := newSchema(json.RawMessage(declared), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range row.fits {
			if _, err := s.apply(wire.MustParse(number)); err != nil {
				t.Errorf("%s refuses %s: %v", declared, number, err)
			}
		}
		for _, number := range row.not {
			if _, err := s.apply(wire.MustParse(number)); err == nil {
				t.Errorf("%s takes %s", declared, number)
			}
		}
	}
}

// The validator's library reads defaults as float64. One that loses digits so
// is a mistake of the tool's author.
func TestDefaultsThatLoseDigits(t *testing.T) {
	add := func(value string) (refused any) {
		defer func() { refused = recover() }()
		tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		a, err := Install(mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), tasks, nil)
		if err != nil {
			t.Fatal(err)
		}
		AddTaskTool(a, &mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"default":` + value + `}}}`)},
			func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			}, nil)
		return nil
	}
	for _, value := range []string{"1", "0.1", `"9007199254740993"`, `[1,{"a":2}]`} {
		if refused := add(value); refused != nil {
			t.Errorf("default %s: %v", value, refused)
		}
	}
	for _, value := range []string{"9007199254740993", `[1,{"a":12345678901234567890}]`, "1e400"} {
		if add(value) == nil {
			t.Errorf("default %s is taken", value)
		}
	}
}
