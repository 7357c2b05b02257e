package guest_test

import (
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/privatecloud/operator/internal/testkit/sshlogin"
)

const (
	// bootTime only ends what hangs: on a quiet machine, a guest takes a minute until it accepts logins.
	bootTime = 20 * time.Minute
	// graceTime is how long a guest may refuse logins after cloud-init has ended.
	graceTime = 5 * time.Minute
	// pollTime is the time between two tries, which take processor time from the boot.
	pollTime = time.Second
)

// session is a login to a guest.
type session struct {
	*guest
	login *sshlogin.Login
}

// logIn waits until the guest accepts the key.
func (g *guest) logIn(key ssh.Signer) *session {
	g.Helper()
	began, ended := time.Now(), time.Time{}
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	for {
		login, err := sshlogin.Dial(g.Context(), "127.0.0.1:"+g.port, key)
		if err == nil {
			g.Logf("the guest accepts logins after %.1f s", time.Since(began).Seconds())
			g.Cleanup(login.Close)
			return &session{g, login}
		}
		if ended.IsZero() && strings.Contains(g.console(), " finished at ") { // the last line of cloud-init
			ended = time.Now()
		}
		switch {
		case time.Since(began) > bootTime:
			g.fail("no login within %s: %v", bootTime, err)
		case !ended.IsZero() && time.Since(ended) > graceTime:
			g.fail("no login, and cloud-init ended %s ago: %v", graceTime, err)
		}
		select {
		case <-g.done:
			g.fail("QEMU ended: %v", err)
		case <-poll.C:
		}
	}
}

// output returns what a command in the guest prints, without spaces at the ends.
func (s *session) output(command string) string {
	s.Helper()
	text, err := s.login.Run(command)
	if err != nil {
		s.fail("%v", err)
	}
	return text
}
