package cloud

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// MaxConsoleLines is how many lines of a console a call can ask for; the least is 1.
	MaxConsoleLines = 1000
	// MaxConsole is how many bytes the text of a console has at most.
	MaxConsole = 64 << 10
)

// ConsoleReader is an optional interface of a Client, which one with the capability Console
// implements.
type ConsoleReader interface {
	// ReadConsole returns the last lines of what the serial console of a server printed, at
	// most so many, and at most MaxConsole bytes of valid UTF-8: the last ones. The text is
	// what the guest wrote, which may have control characters, and is empty if it wrote
	// nothing. The call changes nothing. It fails with Rejected, without sending anything,
	// unless lines is from 1 to MaxConsoleLines, with NotFound or NotFoundUnproven if there
	// is no such server, with Busy while the server cannot be asked, as one that is being
	// built, and with Unsupported if the cloud, or what runs the server, has no console that
	// can be read.
	ReadConsole(ctx context.Context, serverID string, lines int) (string, error)
}

// LastOfConsole returns the last lines of the text of a console, at most so many, and of these
// the last MaxConsole bytes, from the beginning of a character. Bytes that are not UTF-8 become
// U+FFFD. A newline ends a line.
func LastOfConsole(text string, lines int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = text[startOfLast(text, lines):]
	if len(text) <= MaxConsole {
		return text
	}
	cut := len(text) - MaxConsole
	for !utf8.RuneStart(text[cut]) {
		cut++
	}
	return text[cut:]
}

// startOfLast returns where the last lines of a text begin.
func startOfLast(text string, lines int) int {
	end := len(strings.TrimSuffix(text, "\n"))
	for range lines {
		newline := strings.LastIndexByte(text[:end], '\n')
		if newline < 0 {
			return 0
		}
		end = newline
	}
	if lines < 1 {
		return len(text)
	}
	return end + 1
}

// CheckConsoleLines returns the error of a call that asks for too few or too many lines of a
// console, nil for others.
func CheckConsoleLines(op string, lines int) error {
	if lines < 1 || lines > MaxConsoleLines {
		return &Error{Kind: Rejected, Op: op, Detail: fmt.Sprintf("%d lines of the console were asked for: ask for 1 to %d", lines, MaxConsoleLines)}
	}
	return nil
}
