package wire

// A RootsRequest asks for the directories and files that the client works
// with (roots.mdx, "Listing Roots"). The answer is a [RootsResult].
type RootsRequest struct{}

// JSON returns the request. It cannot fail.
func (RootsRequest) JSON() (JSON, error) { return JSON{`{"method":"` + MethodRoots + `"}`}, nil }

// A RootsResult is a client's answer to a [RootsRequest]. An answer that a
// task has received is converted to it:
//
//	result := wire.RootsResult(answers["key"])
type RootsResult JSON

// A Root is a directory or file that the client works with. It is a hint: no
// access follows from it.
type Root struct {
	URI  string // starts with file://
	Name string // what to show the user; may be empty
}

// Roots returns the roots.
func (r RootsResult) Roots() []Root {
	var roots []Root
	for v := range JSON(r).Get("roots").Elements() {
		var root Root
		root.URI, _ = v.Get("uri").Text()
		root.Name, _ = v.Get("name").Text()
		roots = append(roots, root)
	}
	return roots
}
