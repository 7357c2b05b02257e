package vsphere

import "time"

// MaxPages is for tests.
const MaxPages = maxPages

// SetPolling changes how a client waits for changes.
func (c *Client) SetPolling(wait, grace time.Duration) {
	c.polling.wait, c.polling.grace = wait, grace
}
