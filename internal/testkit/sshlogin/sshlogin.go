// Package sshlogin logs in to the guests of tests by SSH.
package sshlogin

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// User is the default user of the image of hack/guest/image.sh.
	User = "debian"
	// tryTime bounds a login, which takes seconds of the processor of an emulated guest.
	tryTime = 30 * time.Second
	// commandTime bounds a command.
	commandTime = 10 * time.Minute
)

// NewKey returns a key pair, whose public half is a line of an authorized_keys file.
func NewKey(t testing.TB) (private ssh.Signer, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if private, err = ssh.NewSignerFromKey(key); err != nil {
		t.Fatal(err)
	}
	return private, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(private.PublicKey())))
}

// Login is a login to a guest. Close ends it.
type Login struct{ client *ssh.Client }

// Dial logs in at an address and port. It makes one try, of at most 30 seconds: what answers there
// may not be the guest yet.
func Dial(ctx context.Context, address string, key ssh.Signer) (*Login, error) {
	dialer := net.Dialer{Timeout: tryTime}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(tryTime))
	link, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: User, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(), // the guest has made it just now, on this machine
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return &Login{ssh.NewClient(link, channels, requests)}, nil
}

// Close ends the login.
func (l *Login) Close() { _ = l.client.Close() }

// Run runs a command and returns what it prints, without spaces at the ends, also if its exit
// status is not zero. It fails after ten minutes, which ends the login.
func (l *Login) Run(command string) (string, error) {
	session, err := l.client.NewSession()
	if err != nil {
		return "", fmt.Errorf("%s: open a session: %w", command, err)
	}
	defer func() { _ = session.Close() }()
	defer time.AfterFunc(commandTime, l.Close).Stop()
	text, err := session.CombinedOutput(command)
	if _, status := errors.AsType[*ssh.ExitError](err); err != nil && !status {
		return "", fmt.Errorf("%s: %w", command, err)
	}
	return strings.TrimSpace(string(text)), nil
}
