package vsphere

import "time"

// MaxPages is for tests.
const MaxPages = maxPages

// SetPolling changes how a client waits for changes.
func (c *Client) SetPolling(wait, grace time.Duration) {
	c.watches.polling.wait, c.watches.polling.grace = wait, grace
}

// SetTaskAge changes how old what is known of a task may be.
func (c *Client) SetTaskAge(age time.Duration) { c.tasks.age = age }

// SetMaxBody changes the bound of an answer, in bytes.
func (c *Client) SetMaxBody(n int64) { c.session.sender.volume.maxBody = n }

// SetRuleHold changes how long a change of DRS rules is waited for, by its call and by others.
func (c *Client) SetRuleHold(hold time.Duration) { c.rules.turns.hold, c.rules.turns.wait = hold, hold }

// SetDefectHold changes how long a site is used of which a zone is missing.
func (c *Client) SetDefectHold(hold time.Duration) { c.sites.defectHold = hold }

// VMPaths are the properties that are read of VMs.
var VMPaths = vmPaths
