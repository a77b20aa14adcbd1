// Package schemacheck compares package wire with the official JSON Schemas of
// the protocol. It is a module of its own, so that the JSON Schema
// implementation stays out of the library's requirements, and it has only
// tests:
//
//   - The differential test generates input requests and answers from the
//     schemas, breaks some of them slightly, and compares the verdict of wire
//     with that of the schemas. They agree, except for the differences listed
//     in differences_test.go, each with its reason.
//   - The views test validates everything that wire writes.
//
// The schemas are read from the folder that DURABLETASKS_SCHEMA names, or
// from ../shared/schema beside the repository. Without them the tests are
// skipped.
package schemacheck
