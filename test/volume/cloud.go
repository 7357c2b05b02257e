package volume

import (
	"context"
	"fmt"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

// Disk is a volume as the cloud reports it.
type Disk struct {
	ID, Name string
	SizeGiB  int
}

// Cloud is a cloud in memory that has volumes, with neither keys nor unique
// names: two creates make two disks.
type Cloud struct {
	cloud.Client

	// Effect is called around each change, which it may prevent.
	Effect func(change func() error) error

	mu    sync.Mutex
	disks []Disk
	made  int
}

// ListServers returns none: the inventory of the Cloud has no servers.
func (c *Cloud) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	return cloud.ServerPage{}, nil
}

// Disks returns all disks.
func (c *Cloud) Disks() []Disk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Disk(nil), c.disks...)
}

func (c *Cloud) find(id string) (int, error) {
	for i, d := range c.disks {
		if d.ID == id {
			return i, nil
		}
	}
	return 0, &cloud.Error{Kind: cloud.NotFound, Op: "volume " + id}
}

func (c *Cloud) get(id string) (Disk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.find(id)
	if err != nil {
		return Disk{}, err
	}
	return c.disks[at], nil
}

func (c *Cloud) create(name string, size int) (d Disk, err error) {
	err = c.Effect(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.made++
		d = Disk{ID: fmt.Sprintf("d%d", c.made), Name: name, SizeGiB: size}
		c.disks = append(c.disks, d)
		return nil
	})
	return d, err
}

func (c *Cloud) grow(id string, size int) (d Disk, err error) {
	err = c.Effect(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		at, err := c.find(id)
		if err == nil {
			c.disks[at].SizeGiB = size
			d = c.disks[at]
		}
		return err
	})
	return d, err
}

func (c *Cloud) remove(id string) error {
	return c.Effect(func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		at, err := c.find(id)
		if err == nil {
			c.disks = append(c.disks[:at], c.disks[at+1:]...)
		}
		return err
	})
}
