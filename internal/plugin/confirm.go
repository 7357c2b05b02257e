package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNotConfirmed ends a command whose question was not answered with yes.
var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// Confirm asks a question on a terminal. It fails if the answer is not yes, and where
// nobody can answer.
func (e *Env) Confirm(question string) error {
	if !e.Terminal(e.In) {
		return errors.New("this needs a confirmation, and there is no terminal to ask: add --yes")
	}
	fmt.Fprintf(e.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
