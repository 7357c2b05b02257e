package browser

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

// Mock is a mock cloud in a process of its own.
type Mock struct {
	// API and Admin are the URLs of its ports.
	API, Admin string

	command *exec.Cmd
}

var listening = regexp.MustCompile(`msg=listening .*\burl=(\S+) admin=(\S+)`)

// StartMock starts the binary that the variable MOCKCLOUD names, on free ports. It
// returns an error if the mock cloud does not log its addresses.
func StartMock(ctx context.Context, args ...string) (*Mock, error) {
	args = append([]string{"--addr=127.0.0.1:0", "--admin-bind-address=127.0.0.1:0"}, args...)
	m := &Mock{command: exec.CommandContext(ctx, os.Getenv("MOCKCLOUD"), args...)}
	log, err := m.command.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the mock cloud: %w", err)
	}
	if err := m.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the mock cloud, run it through make test-page: %w", err)
	}
	lines := bufio.NewScanner(log)
	var read strings.Builder
	for lines.Scan() {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			m.API, m.Admin = found[1], found[2]
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return m, nil
		}
		read.WriteString(lines.Text() + "\n")
	}
	return nil, fmt.Errorf("the mock cloud does not listen: %w\n%s", errors.Join(lines.Err(), m.command.Wait()), read.String())
}

// Stop ends the process and waits for it. It returns an error if it did not exit with 0.
func (m *Mock) Stop() error {
	if err := m.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the mock cloud: %w", err)
	}
	if err := m.command.Wait(); err != nil {
		return fmt.Errorf("stopping the mock cloud: %w", err)
	}
	return nil
}

// Call calls the URL and returns the status and the body. The status is 0 if there is
// no answer.
func Call(ctx context.Context, method, url, body string) (int, string) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(data)
}
