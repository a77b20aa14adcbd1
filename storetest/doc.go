// Package storetest checks that a [durabletasks.TaskStore] keeps the contract
// that its comment states.
package storetest
