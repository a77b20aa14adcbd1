package wire

// A RootsRequest asks the client for the directories and files that it works
// with (roots.mdx, "Listing Roots"). The answer is a [RootsResult].
type RootsRequest struct{}

// JSON returns the request. The error is always nil.
func (RootsRequest) JSON() (JSON, error) { return JSON{`{"method":"` + MethodRoots + `"}`}, nil }

// A RootsResult is the answer of a client to a [RootsRequest]. Convert the
// answer that a task has received:
//
//	result := wire.RootsResult(answers["key"])
type RootsResult JSON

// A Root is a directory or file that the client works with. It is a hint and
// grants no access.
type Root struct {
	URI  string // starts with file://
	Name string // what to show the user; may be empty
}

// Roots returns the directories and files.
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
