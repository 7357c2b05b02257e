package openstack_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/testkit"
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
	// Nova shows that a server is DELETED, which is the end of its deletion, before it removes the server.
	testkit.NewT(t, callTime, pollTime).Eventually(func(ctx context.Context) cloud.Kind {
		_, err := u.c.ReadConsole(ctx, server, 1)
		return cloud.KindOf(err)
	}).Should(Equal(cloud.NotFound), "the console of a server that is gone")
	if len(u.errs) > 0 {
		t.Error(u.errs)
	}
}
