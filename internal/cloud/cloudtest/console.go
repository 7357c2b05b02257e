package cloudtest

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

var withConsole = []cloud.Capability{cloud.Console}

var consoleCases = []testCase{
	{name: "the console of a server that runs: has lines, at most as many as asked for", needs: withConsole,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("talks")}), f.consoles(t)
			if f.BootConsole != nil {
				f.BootConsole(t, server)
			}
			all := mustPrint(ctx, t, f, server.ID)
			for _, lines := range []int{1, 2, cloud.MaxConsoleLines} {
				text, err := c.ReadConsole(ctx, server.ID, lines)
				if err != nil {
					t.Fatalf("ReadConsole of %d lines: %v", lines, err)
				}
				got := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
				if text == "" || got > lines || len(text) > cloud.MaxConsole || !utf8.ValidString(text) {
					t.Errorf("ReadConsole of %d lines: %d lines, %d bytes, %.200q; want some, at most %d bytes of UTF-8", lines, got, len(text), text, cloud.MaxConsole)
				}
			}
			if !strings.Contains(all, "\n") {
				t.Errorf("ReadConsole: %q, want several lines", all)
			}
		}},
	{name: "the console, of a server that does not exist: NotFound", needs: withConsole,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("silent")}), f.consoles(t)
			mustDelete(ctx, t, f, server.ID)
			_, err := c.ReadConsole(ctx, server.ID, 1)
			wantGone(t, f, "ReadConsole", err)
		}},
	{name: "the console, of no lines or too many: Rejected", needs: withConsole,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("bounded")}), f.consoles(t)
			for _, lines := range []int{-1, 0, cloud.MaxConsoleLines + 1} {
				_, err := c.ReadConsole(ctx, server.ID, lines)
				wantKind(t, "ReadConsole", err, cloud.Rejected, false)
			}
			_, err := c.ReadConsole(ctx, "", 1)
			wantKind(t, "ReadConsole without an id", err, cloud.Rejected, false)
		}},
}

// consoles returns the client of the fixture, which the capability promises to have the call.
func (f Fixture) consoles(t *testing.T) cloud.ConsoleReader {
	t.Helper()
	c, ok := f.Client.(cloud.ConsoleReader)
	if !ok {
		t.Fatalf("%T has the capability console, and is no cloud.ConsoleReader", f.Client)
	}
	return c
}

// mustPrint returns what the console of a server printed, once it has printed something.
func mustPrint(ctx context.Context, t *testing.T, f Fixture, id string) string {
	t.Helper()
	for pause := time.NewTicker(f.pollTime()); ; {
		text, err := f.consoles(t).ReadConsole(ctx, id, cloud.MaxConsoleLines)
		switch {
		case err != nil && !cloud.Is(err, cloud.Busy):
			t.Fatalf("ReadConsole: %v", err)
		case text != "":
			return text
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("ReadConsole: the console of a server that runs has printed nothing: %v", err)
		}
	}
}
