//go:build race

package wal_test

// raced says that the race detector watches, which makes children slow.
const raced = true
