package inventory

import (
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// connection is the client and the settings of a cloud, for a part of its inventory that
// calls the cloud on demand.
type connection struct {
	clock func() time.Time

	// mu also protects what the part knows. It is locked after the lock of the Inventory.
	mu sync.RWMutex
	// client is nil while the cloud is not connected.
	client   cloud.Client
	settings Settings
}

func (c *connection) configure(settings Settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings = settings
}

func (c *connection) connect(client cloud.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = client
}
