package openstack

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestConsoleOfAServer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\xff", 200<<10)
	for name, tc := range map[string]struct {
		printed string
		lines   int
		want    string
	}{
		"nothing was printed":                      {"", 10, ""},
		"fewer lines than asked for":               {"a\nb\n", 10, "a\nb\n"},
		"as many lines as asked for":               {"a\nb\nc\n", 2, "b\nc\n"},
		"the last line has no end":                 {"a\nb\nlogin: ", 2, "b\nlogin: "},
		"carriage returns and escapes are removed": {"a\r\n\x1b[1mb\tc\r\n", 5, "a\n[1mb\tc\n"},
		"not ASCII: replaced byte by byte":         {"ü\n", 1, "\ufffd\ufffd\n"},
		"100 KiB that are not ASCII":               {long, cloud.MaxConsoleLines, strings.Repeat("\ufffd", cloud.MaxConsole/3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.console(novaConsole{printed: tc.printed})
			got, err := s.client().ReadConsole(t.Context(), someID, tc.lines)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("%d bytes %.60q, want %d bytes %.60q", len(got), got, len(tc.want), tc.want)
			}
		})
	}
}

func TestConsoleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const path = "POST compute/servers/" + someID + "/action"
	answering := func(body string, status int) func(*stub) { return func(s *stub) { s.on(path, body, status) } }
	for name, tc := range map[string]struct {
		console novaConsole
		server  string // the answer about the server, a 404 if it is empty
		answer  func(*stub)
		want    cloud.Kind
		says    string
		posts   int
	}{
		"no host has the server yet: Busy":                   {console: novaConsole{unplaced: true}, want: cloud.Busy, says: "as while it is built or shelved (Instance " + someID + " is not ready)", posts: 1},
		"its host is building it: Busy":                      {console: novaConsole{undefined: true}, server: oneServer(`"status": "BUILD"`), want: cloud.Busy, says: "working on the server", posts: 1},
		"its host is rebuilding it: Busy":                    {console: novaConsole{undefined: true}, server: oneServer(`"OS-EXT-STS:task_state": "rebuild_spawning"`), want: cloud.Busy, says: "working on the server", posts: 1},
		"there is no server: NotFound":                       {console: novaConsole{undefined: true}, want: cloud.NotFound, posts: 1},
		"the server is deleted, and kept: NotFound":          {console: novaConsole{undefined: true}, server: oneServer(`"status": "SOFT_DELETED"`), want: cloud.NotFound, posts: 1},
		"the server has no console: Unsupported":             {console: novaConsole{closed: true}, server: oneServer(), want: cloud.Unsupported, says: "(Guest does not have a console available.)", posts: 1},
		"the hypervisor cannot read consoles: Unsupported":   {console: novaConsole{unable: true}, want: cloud.Unsupported, says: "(The requested functionality is not supported.)", posts: 1},
		"a 404 that is not the service's own: Busy":          {answer: answering("<html>", http.StatusNotFound), server: oneServer(), want: cloud.Busy, posts: 1},
		"a 404 that is not the service's own, and no server": {answer: answering("<html>", http.StatusNotFound), want: cloud.NotFound, posts: 1},
		"the right is missing: Forbidden": {
			answer: answering(`{"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:os-console-output to be performed."}}`, http.StatusForbidden),
			want:   cloud.Forbidden, says: "os_compute_api:os-console-output", posts: 1,
		},
		"the host does not answer: Unavailable, and tried again": {answer: answering(`{"computeFault": {"code": 500, "message": "Unexpected API Error."}}`, http.StatusInternalServerError), want: cloud.Unavailable, posts: 3},
		"the connection ends: Unavailable, and tried again":      {answer: func(s *stub) { s.handle(path, cut) }, want: cloud.Unavailable, posts: 3},
		"the answer has no output: Unreadable":                   {answer: answering(`{"output": null}`, http.StatusOK), want: cloud.Unreadable, posts: 1},
		"the answer is too large: Unreadable":                    {answer: answering(`{"output": "`+strings.Repeat("x", maxBody)+`"}`, http.StatusOK), want: cloud.Unreadable, posts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET compute/servers/"+someID, novaNotFound, http.StatusNotFound)
			if tc.server != "" {
				s.on("GET compute/servers/"+someID, tc.server)
			}
			s.console(tc.console)
			if tc.answer != nil {
				tc.answer(s)
			}
			_, err := s.client().ReadConsole(t.Context(), someID, 5)
			if diff := cmp.Diff(outcome{Kind: tc.want}, outcomeOf(err)); diff != "" || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want it to say %q (-want +got):\n%s", err, tc.says, diff)
			}
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q has several lines", err)
			}
			posts := 0
			for _, sent := range s.taken() {
				if strings.HasPrefix(sent, path) {
					posts++
				}
			}
			if posts != tc.posts {
				t.Errorf("%d requests, want %d", posts, tc.posts)
			}
		})
	}
}

// A process that does not lead may read.
func TestConsoleIsReadWithoutAPermit(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.console(novaConsole{printed: "a\n"})
	c := s.client()
	s.on("GET compute/servers/"+someID, oneServer())
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Fatal(err)
	}
	ctx := cloud.WithPermit(t.Context(), func() bool { return false })
	if got, err := c.ReadConsole(ctx, someID, 1); err != nil || got != "a\n" {
		t.Errorf("ReadConsole: %q, %v", got, err)
	}
	select {
	case <-c.session.changed:
		t.Error("the call counts as one that may have changed a server")
	default:
	}
}

func TestConsoleOfImpossibleRequestIsNotSent(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	for _, lines := range []int{-1, 0, cloud.MaxConsoleLines + 1} {
		if _, err := s.client().ReadConsole(t.Context(), someID, lines); !cloud.Is(err, cloud.Rejected) {
			t.Errorf("%d lines: %v, want Rejected", lines, err)
		}
	}
	if _, err := s.client().ReadConsole(t.Context(), "../servers", 1); !cloud.Is(err, cloud.NotFound) {
		t.Errorf("an id that is a path: %v, want NotFound", err)
	}
	if sent := s.taken(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
}
