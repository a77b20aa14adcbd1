package wire

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// This file holds what JSON.Decode knows about Go types: the fields that the
// members of an object decode into. The rules are those of encoding/json, except
// that the matcher compares names exactly.

// A target describes how encoding/json decodes into a Go type, as far as the
// names of members depend on it.
type target struct {
	// kind is Struct, Map, Slice, Array or Interface, and Invalid for any other
	// kind of type or a type with an UnmarshalJSON. Pointers are not counted.
	kind     reflect.Kind
	pointers int           // how many pointers lead there
	length   int           // of an array
	elem     *target       // of a map, a slice or an array
	fields   *structFields // of a struct

	// structs says whether the type leads to a struct, interfaces whether it
	// leads to an interface that may already hold a pointer.
	structs, interfaces bool
}

// structFields are the fields of one struct type by their JSON names.
type structFields struct {
	list   []structField
	byName map[string]int // index in list
	// byFold numbers the sets of names that differ only in case. Its keys are
	// folded names.
	byFold map[string]int
}

type structField struct {
	name   string
	index  []int // for reflect, through embedded structs
	tagged bool  // the name is from a tag
	typ    reflect.Type
	target *target
	fold   int // in byFold
}

var nowhere target // where no struct can be reached

var targets sync.Map // from reflect.Type to *target

// targetOf returns the target for a type. It is computed once.
func targetOf(t reflect.Type) *target {
	if found, ok := targets.Load(t); ok {
		return found.(*target)
	}
	made := make(map[reflect.Type]*target)
	result := makeTarget(t, made)
	// A type can be recursive, so repeat until nothing changes.
	for changed := true; changed; {
		changed = false
		for _, m := range made {
			structs, interfaces := m.reach()
			changed = changed || structs != m.structs || interfaces != m.interfaces
			m.structs, m.interfaces = structs, interfaces
		}
	}
	for t, m := range made {
		targets.LoadOrStore(t, m)
	}
	return result
}

func (t *target) reach() (structs, interfaces bool) {
	switch t.kind {
	case reflect.Struct:
		for _, f := range t.fields.list {
			interfaces = interfaces || f.target.interfaces
		}
		return true, interfaces
	case reflect.Map: // decodes into new elements
		return t.elem.structs, false
	case reflect.Slice, reflect.Array:
		return t.elem.structs, t.elem.interfaces
	}
	return false, t.kind == reflect.Interface
}

// encoding.TextUnmarshaler does not matter here: it decodes only strings.
var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func makeTarget(typ reflect.Type, made map[reflect.Type]*target) *target {
	if t, ok := made[typ]; ok {
		return t
	}
	t := new(target)
	made[typ] = t
	if typ.Kind() != reflect.Pointer && typ.Name() != "" && reflect.PointerTo(typ).Implements(unmarshaler) {
		return t
	}
	for ; typ.Kind() == reflect.Pointer; typ = typ.Elem() {
		if t.pointers++; t.pointers > MaxDepth || typ.Implements(unmarshaler) { // a pointer type may point to itself
			return t
		}
	}
	switch typ.Kind() {
	case reflect.Struct:
		t.fields = makeFields(typ, made)
	case reflect.Array:
		t.length = typ.Len()
		fallthrough
	case reflect.Map, reflect.Slice:
		t.elem = makeTarget(typ.Elem(), made)
	case reflect.Interface:
	default:
		return t
	}
	t.kind = typ.Kind()
	return t
}

// makeFields returns the fields that encoding/json sees in a struct. It applies
// Go's rules for embedded fields, except that among fields of one name at one
// depth a single field with a tag wins.
func makeFields(typ reflect.Type, made map[reflect.Type]*target) *structFields {
	type embedded struct {
		typ   reflect.Type
		index []int
	}
	var found []structField
	next, nextCount := []embedded{{typ: typ}}, map[reflect.Type]int{}
	visited := make(map[reflect.Type]bool)
	for len(next) > 0 {
		level, count := next, nextCount
		next, nextCount = nil, make(map[reflect.Type]int)
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				sf := e.typ.Field(i)
				tag := sf.Tag.Get("json")
				inner := sf.Type
				if inner.Name() == "" && inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				name, options, _ := strings.Cut(tag, ",")
				embeds := inner.Kind() == reflect.Struct && (sf.Anonymous || hasEmbedOption() && slices.Contains(strings.Split(options, ","), "embed"))
				if tag == "-" || !sf.IsExported() && !(embeds && sf.Anonymous) {
					continue
				}
				f := structField{name: sf.Name, index: append(slices.Clip(e.index), i), typ: sf.Type}
				if name = tagName(name); name != "" {
					f.name, f.tagged = name, true
				}
				if embeds && !f.tagged {
					if nextCount[inner]++; nextCount[inner] == 1 {
						next = append(next, embedded{inner, f.index})
					}
					continue
				}
				found = append(found, f)
				if count[e.typ] > 1 {
					found = append(found, f) // its struct is embedded twice, so the name is ambiguous
				}
			}
		}
	}
	slices.SortStableFunc(found, func(a, b structField) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), tagOrder(a, b))
	})
	fields := &structFields{byName: make(map[string]int), byFold: make(map[string]int)}
	for i := 0; i < len(found); {
		f, same := found[i], 1
		for i+same < len(found) && found[i+same].name == f.name {
			same++
		}
		ambiguous := same > 1 && len(found[i+1].index) == len(f.index) && found[i+1].tagged == f.tagged
		i += same
		if ambiguous {
			continue
		}
		folded := string(appendFold(nil, f.name))
		if _, ok := fields.byFold[folded]; !ok {
			fields.byFold[folded] = len(fields.byFold)
		}
		f.fold, f.target = fields.byFold[folded], makeTarget(f.typ, made)
		fields.byName[f.name] = len(fields.list)
		fields.list = append(fields.list, f)
	}
	return fields
}

func tagOrder(a, b structField) int {
	switch {
	case a.tagged == b.tagged:
		return 0
	case a.tagged:
		return -1
	}
	return 1
}

// tagName returns the name that encoding/json gives a field whose tag has this
// name, or "" if it uses the name of the field. Versions of Go differ about some
// characters; for a name with one of these, tagName asks encoding/json.
func tagName(name string) string {
	odd := strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	if !odd {
		return name
	}
	sample := reflect.New(reflect.StructOf([]reflect.StructField{{
		Name: "Field", Type: reflect.TypeFor[int](), Tag: reflect.StructTag("json:" + strconv.Quote(name)),
	}}))
	text, err := Marshal(sample.Interface())
	if err != nil {
		return ""
	}
	for taken := range text.Members() {
		if taken != "Field" {
			return taken
		}
	}
	return ""
}

// hasEmbedOption reports whether encoding/json supports the tag option embed,
// which treats a struct field as embedded. Go 1.27 added it.
var hasEmbedOption = sync.OnceValue(func() bool {
	var sample struct {
		Field struct{ Inner int } `json:",embed"`
	}
	text, err := Marshal(sample)
	return err == nil && !text.Get("Inner").IsZero()
})

// appendFold appends the folded name. Names that encoding/json considers equal
// fold to the same name.
func appendFold(dst []byte, name string) []byte {
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z':
			r -= 'a' - 'A'
		case r >= utf8.RuneSelf:
			for { // find the smallest rune of those that are equal but for their case
				next := unicode.SimpleFold(r)
				smallest := next <= r
				if r = next; smallest {
					break
				}
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
