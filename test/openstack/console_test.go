package openstack_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// The fake driver of nova shows the same three lines for each server.
func TestConsoleOfAServerOfNova(t *testing.T) {
	t.Parallel()
	u := &use{T: t, c: newClient(t, newProject(t), &wire{})}
	server := u.created(t.Context(), cloud.CreateServer{Name: "talks", IdempotencyKey: "talks"})
	for lines, want := range map[int]string{
		1:                     "LAST LINE",
		2:                     "ANOTHER\nLAST LINE",
		cloud.MaxConsoleLines: "FAKE CONSOLE OUTPUT\nANOTHER\nLAST LINE",
	} {
		if got, err := u.c.ReadConsole(t.Context(), server, lines); err != nil || got != want {
			t.Errorf("%d lines: %q, %v, want %q", lines, got, err, want)
		}
	}
	u.deleted(t.Context(), server)
	if _, err := u.c.ReadConsole(t.Context(), server, 1); !cloud.Is(err, cloud.NotFound) {
		t.Errorf("of a server that is gone: %v, want NotFound", err)
	}
	if len(u.errs) > 0 {
		t.Error(u.errs)
	}
}
