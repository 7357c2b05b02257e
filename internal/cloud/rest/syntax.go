package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// maxStart bounds what is looked at of the beginning of a body, and of what is around an
	// error in it, in bytes: secrets in it are recognized if they are whole.
	maxStart = 16 << 10
	// maxQuoted bounds what is quoted of a body, in runes.
	maxQuoted = 40
)

// encodings are how bodies begin that are in another encoding than UTF-8.
var encodings = []struct{ start, text string }{
	{"\x1f\x8b", "compressed with gzip, or twice, and its headers do not say so"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd, which the operator does not read"},
	{"\x78\x01", "compressed with deflate, which the operator does not read"},
	{"\x78\x9c", "compressed with deflate, which the operator does not read"},
	{"\x78\xda", "compressed with deflate, which the operator does not read"},
	{"\xff\xfe", "in UTF-16 or UTF-32, not in UTF-8"},
	{"\xfe\xff", "in UTF-16, not in UTF-8"},
	{"\x00\x00\xfe\xff", "in UTF-32, not in UTF-8"},
	{"[\x00", "in UTF-16 or UTF-32, not in UTF-8"},
	{"{\x00", "in UTF-16 or UTF-32, not in UTF-8"},
	{"\x00[", "in UTF-16, not in UTF-8"},
	{"\x00{", "in UTF-16, not in UTF-8"},
}

// notText returns why a body that begins with start cannot be text, empty if it can be.
func (a *answer) notText(start []byte) string {
	for _, encoding := range encodings {
		if bytes.HasPrefix(start, []byte(encoding.start)) {
			return "the answer is " + encoding.text
		}
	}
	encoded := a.header.Get("Content-Encoding")
	if encoded == "" || strings.EqualFold(strings.TrimSpace(encoded), "identity") {
		return ""
	}
	return fmt.Sprintf("the answer has the content encoding %s, which was not asked for: have the cloud send it as it is, or with gzip", a.quoted(encoded))
}

// notJSON returns why a body that begins with start is not JSON; kind says of which kind it is.
func (a *answer) notJSON(start []byte, kind string) unusable {
	if text := a.notText(start); text != "" {
		return unusable(text)
	}
	text := "the answer is not JSON but " + kind
	if quoted := a.quoted(string(start)); !a.html() && len(quoted) > len(`""`) {
		text += ", beginning with " + quoted
	}
	return unusable(text)
}

// place is where a body is wrong: after at bytes of it, and after before bytes of around.
type place struct {
	at     int64
	around []byte
	before int
	// cut is set when around may begin within a word.
	cut bool
}

// placeIn returns the place that follows the first n bytes of body.
func placeIn(body []byte, n int) place {
	from := max(n-maxStart, 0)
	return place{at: int64(n), around: body[from:min(n+maxStart, len(body))], before: n - from, cut: from > 0}
}

// invalid returns why a body that begins with start is not valid JSON.
func (a *answer) invalid(start []byte, p place) unusable {
	if text := a.notText(start); text != "" {
		return unusable(text)
	}
	text := fmt.Sprintf("%s: at byte %d", errInvalid, p.at+1)
	// A secret is found only as a whole, so the word is quoted from its beginning.
	begin := bytes.LastIndexAny(p.around[:p.before], " \t\r\n,:[]{}\"") + 1
	if begin == 0 && p.cut {
		return unusable(text)
	}
	if quoted := a.quoted(string(p.around[begin:])); len(quoted) > len(`""`) {
		text += ", near " + quoted
	}
	return unusable(text)
}

// quoted returns a part of the answer for errors: bounded, printable, without secrets, in quotes. It is
// empty where the answer has a new secret.
func (a *answer) quoted(text string) string {
	if a.secret {
		return ""
	}
	text = transport.Printable(strings.ToValidUTF8(text, ""))
	if a.scrub != nil {
		text = a.scrub(text)
	}
	return fmt.Sprintf("%q", transport.Truncate(text, maxQuoted))
}

// unfinished is the error for JSON that ends before its time.
const unfinished = errInvalid + ": it ends too early"

// checkJSON returns why body, the answer without its byte order mark, is not valid JSON; nil if it is.
func (a *answer) checkJSON(body []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(body, &raw)
	wrong, ok := errors.AsType[*json.SyntaxError](err)
	switch {
	case err == nil:
		return nil
	case len(trim(body)) == 0:
		return errEmpty
	case !ok:
		return errInvalid
	case strings.Contains(wrong.Error(), "unexpected end"):
		return a.tooShort(body)
	}
	p := placeIn(body, max(int(wrong.Offset)-1, 0))
	p.at += int64(len(a.body) - len(body))
	return a.invalid(body, p)
}

// tooShort returns why a body that begins with start ends too early.
func (a *answer) tooShort(start []byte) unusable {
	if text := a.notText(start); text != "" {
		return unusable(text)
	}
	return unfinished
}

// invalid returns why what was read is not valid JSON: err is that of the decoder.
func (s *stream) invalid(got *answer, err error) unusable {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return got.tooShort(s.start)
	case errors.Is(err, io.EOF) && len(trim(s.start)) == 0:
		return errEmpty
	case errors.Is(err, io.EOF):
		return got.tooShort(s.start)
	case !ok:
		return errInvalid
	}
	unread := s.dec.UnreadBuffer()
	read := s.dec.InputOffset()
	p := placeIn(unread, int(min(max(wrong.ByteOffset-read, 0), int64(len(unread)))))
	_, values := s.dec.StackIndex(s.dec.StackDepth())
	p.at, p.cut = s.offset+wrong.ByteOffset, p.cut || read > 0 && values > 0 // a bracket ends a word
	return got.invalid(s.start, p)
}
