package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.ConsoleReader = (*Client)(nil)

// ReadConsole returns the last lines of what the console of a server printed, as the compute
// service keeps it: without characters that are not ASCII, for which the text has U+FFFD, and
// without most control characters. The call is a read, although it is an action. Its answer is
// within maxBody: a hypervisor reads 100 KiB, of which each byte takes at most six in JSON.
func (c *Client) ReadConsole(ctx context.Context, serverID string, lines int) (string, error) {
	op := "read the console of server " + quote(serverID)
	if err := cloud.CheckConsoleLines(op, lines); err != nil {
		return "", err
	}
	ctx, end, err := c.session.beginAbout(ctx, op, serverID)
	if err != nil {
		return "", err
	}
	defer end()
	var got struct {
		Output *string `json:"output"`
	}
	// The service counts what follows the last newline as a line, also if it is empty.
	call := action(op, serverID, "os-getConsoleOutput", map[string]any{"length": lines + 1})
	call.about, call.out = aboutConsole, &got
	switch err := c.session.do(ctx, call); {
	case err != nil:
		return "", c.noConsole(ctx, op, serverID, err)
	case got.Output == nil:
		return "", unreadable(call, "the answer has no output of the console")
	}
	return cloud.LastOfConsole(*got.Output, lines), nil
}

// noConsole returns why a console could not be read, where err does not say what to do.
func (c *Client) noConsole(ctx context.Context, op, serverID string, err *cloud.Error) error {
	said := ""
	if err.Detail != "" {
		said = " (" + err.Detail + ")"
	}
	switch err.Kind {
	case cloud.Busy:
		err.Detail = "no host of the cloud has the server, as while it is built or shelved" + said
	case cloud.Unsupported:
		err.Detail = "the hypervisor of the server does not show what the console printed: ask whoever operates the cloud for another way" + said
	case cloud.NotFoundUnproven:
		return c.confirm(ctx, op, serverID, err)
	case cloud.NotFound:
		// The service says so of a server, of one that its host does not know yet, and of a console.
		s, failed := c.read(ctx, op, serverID)
		switch {
		case failed != nil:
			return failed
		case s.state() == cloud.StateBuilding, s.state() == cloud.StateDeleting, s.Task != "":
			err.Kind, err.Detail = cloud.Busy, "the cloud is working on the server"+said
		default:
			err.Kind, err.Detail = cloud.Unsupported, "the server has no console that can be read: ask whoever operates the cloud for one that writes a log"+said
		}
	default:
	}
	return err
}
