package fake

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// ReadConsole returns the last lines of the text that SetConsole set for a server.
func (c *serverClient) ReadConsole(ctx context.Context, serverID string, lines int) (string, error) {
	op := "read the console of server " + quote(serverID)
	if err := checkID(op, serverID); err != nil {
		return "", err
	}
	if err := cloud.CheckConsoleLines(op, lines); err != nil {
		return "", err
	}
	needs := []cloud.Capability{cloud.Console}
	return do(ctx, c.calls, call{verb: ReadConsole, object: serverID, op: op, needs: needs}, func() (string, error) {
		server, err := c.server(op, serverID)
		switch {
		case err != nil:
			return "", err
		case server.State == cloud.StateBuilding:
			return "", failure(op, cloud.Busy, "the server is %s", server.State)
		}
		return cloud.LastOfConsole(c.consoles[serverID], lines), nil
	})
}

// SetConsole sets what the console of a server has printed.
func (c *Cloud) SetConsole(serverID, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.consoles[serverID] = text
}

// ReadConsole returns the last lines of the text that SetConsole set for a server.
func (c *Cloud) ReadConsole(ctx context.Context, serverID string, lines int) (string, error) {
	return c.servers.ReadConsole(ctx, serverID, lines)
}
