package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// Client is one project in one region. It is safe for concurrent use.
type Client struct {
	cfg     Config
	session *session
	flavors *flavors
	images  *lookup
	// imageNames has the names of the images that servers were made from.
	imageNames *imageNames
	networks   *lookup
	groups     *serverGroups
	pace       pace
}

var (
	_ cloud.Client         = (*Client)(nil)
	_ cloud.LoadReporter   = (*Client)(nil)
	_ cloud.ServerStreamer = (*Client)(nil)
)

// New returns a client of the project that cfg describes. It makes no call. Its errors
// say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := newSession(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{
		cfg:        cfg,
		session:    s,
		flavors:    newFlavors(),
		images:     newLookup(),
		imageNames: newImageNames(),
		networks:   newLookup(),
		groups:     newServerGroups(),
		pace:       defaultPace,
	}, nil
}

// Close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. It ends with ctx, of which it leaves five seconds for the session,
// and ignores the cloud's answer. Later calls fail with Unavailable. The second Close
// does nothing.
func (c *Client) Close(ctx context.Context) { c.session.close(ctx) }

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.session.exchange.transport.Load() }
