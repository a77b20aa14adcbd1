//go:build !windows

package wal

import (
	"errors"
	"fmt"
	"os"
)

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("sync the directory: %w", err)
	}
	return nil
}
