//go:build !windows

package wal

import (
	"errors"
	"fmt"
	"os"
)

// openDir opens dir for syncOpenDir.
func openDir(dir string) (*os.File, error) { return os.Open(dir) }

// syncOpenDir makes the names in an open directory durable.
func syncOpenDir(d *os.File) error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the directory: %w", err)
	}
	return nil
}

// closeDir closes what openDir has opened.
func closeDir(d *os.File) error { return d.Close() }

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := openDir(dir)
	if err != nil {
		return fmt.Errorf("sync the directory: %w", err)
	}
	return errors.Join(syncOpenDir(d), d.Close())
}
