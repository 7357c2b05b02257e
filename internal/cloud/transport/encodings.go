package transport

import (
	"html"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// gap stands in a decoded text between parts that do not belong together.
const gap = -1

// unit is a byte of a decoded text, or a gap, and the part of the text that it was
// decoded from.
type unit struct {
	value int16
	span  struct{ from, to int32 }
}

func newUnit(value int16, from, to int32) unit {
	u := unit{value: value}
	u.span.from, u.span.to = from, to
	return u
}

// decoded is a text in which an encoding was undone, perhaps after others.
type decoded []unit

// plain returns a text as it is.
func plain(text string) decoded {
	units := make(decoded, len(text))
	for i := range len(text) {
		units[i] = newUnit(int16(text[i]), int32(i), int32(i+1))
	}
	return units
}

// find returns the parts of the text that hold a secret, or enough of its beginning.
func (d decoded) find(secret string) []span {
	var found []span
	need := enough(secret)
	for i := 0; i+need <= len(d); i++ {
		n := 0
		for n < len(secret) && i+n < len(d) && d[i+n].is(secret[n]) {
			n++
		}
		if n >= need {
			found = append(found, span{int(d[i].span.from), int(d[i+n-1].span.to)})
			i += n - 1
		}
	}
	return found
}

// is reports whether a unit stands for a byte. In queries a plus sign stands for a
// space.
func (u unit) is(b byte) bool {
	return u.value == int16(b) || (u.value == '+' && b == ' ')
}

// decode returns the texts that d is if it has one more encoding.
func (d decoded) decode() []decoded {
	var all []decoded
	if text, changed := d.unescape('%', percent); changed {
		all = append(all, text)
	}
	if text, changed := d.unescape('\\', backslash); changed {
		all = append(all, text)
	}
	if text, changed := d.unescape('&', entity); changed {
		all = append(all, text)
	}
	return slices.Concat(all, d.hexDumps(), d.base64())
}

// unescape replaces the escapes that begin with mark. escape returns what the
// units at the beginning of its argument stand for, and how many they are; 0 if
// they are no escape.
func (d decoded) unescape(mark int16, escape func(decoded) (string, int)) (decoded, bool) {
	var out decoded
	changed := false
	for i := 0; i < len(d); {
		if d[i].value == mark {
			if text, n := escape(d[i:]); n > 0 {
				for _, b := range []byte(text) {
					out = append(out, newUnit(int16(b), d[i].span.from, d[i+n-1].span.to))
				}
				i += n
				changed = true
				continue
			}
		}
		out = append(out, d[i])
		i++
	}
	return out, changed
}

// percent reads an escape of URLs, such as %2F.
func percent(d decoded) (string, int) {
	value, ok := d.hex(1, 2)
	if !ok {
		return "", 0
	}
	return string([]byte{byte(value & 0xff)}), 3
}

// backslash reads an escape of JSON, or of a byte in the literals of most languages.
func backslash(d decoded) (string, int) {
	if len(d) < 2 {
		return "", 0
	}
	if i := strings.IndexRune(`"\/'bfnrt`, rune(d[1].value)); i >= 0 {
		return "\"\\/'\b\f\n\r\t"[i : i+1], 2
	}
	if value, ok := d.hex(2, 2); ok && d[1].value == 'x' {
		return string([]byte{byte(value & 0xff)}), 4
	}
	if d[1].value != 'u' {
		return "", 0
	}
	value, ok := d.hex(2, 4)
	if !ok {
		return "", 0
	}
	r, n := value, 6
	if utf16.IsSurrogate(r) && len(d) > 7 && d[6].value == '\\' && d[7].value == 'u' {
		if low, ok := d.hex(8, 4); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				r, n = pair, 12
			}
		}
	}
	return string(r), n
}

// hex reads n hexadecimal digits from a position.
func (d decoded) hex(at, n int) (value int32, ok bool) {
	if len(d) < at+n {
		return 0, false
	}
	for _, u := range d[at : at+n] {
		digit, ok := hexDigit(u.value)
		if !ok {
			return 0, false
		}
		value = value<<4 | digit
	}
	return value, true
}

func hexDigit(c int16) (int32, bool) {
	switch {
	case c >= '0' && c <= '9':
		return int32(c - '0'), true
	case c >= 'a' && c <= 'f':
		return int32(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return int32(c-'A') + 10, true
	}
	return 0, false
}

// maxEntity bounds an entity of HTML, such as &quot; or &#x0022;, in bytes.
const maxEntity = 12

// entity reads an entity of HTML.
func entity(d decoded) (string, int) {
	text := make([]byte, 0, maxEntity)
	for _, u := range d[:min(len(d), maxEntity)] {
		if u.value < 0 || u.value > 0xff {
			return "", 0
		}
		text = append(text, byte(u.value))
		if u.value == ';' {
			if plain := html.UnescapeString(string(text)); plain != string(text) {
				return plain, len(text)
			}
			return "", 0
		}
	}
	return "", 0
}

// shortestDump is from how many bytes on hexadecimal digits count as a dump. Words
// of letters from a to f are shorter.
const shortestDump = 4

// hexDumps returns what the text is if its hexadecimal digits stand for bytes. Other
// digits may stand before them, and colons and spaces between them.
func (d decoded) hexDumps() []decoded {
	var out [2]decoded
	var run decoded
	end := func() {
		for offset := range out {
			if len(run) >= 2*shortestDump+offset {
				out[offset] = append(appendBytes(out[offset], run[offset:]), newUnit(gap, 0, 0))
			}
		}
		run = run[:0]
	}
	for _, u := range d {
		switch _, ok := hexDigit(u.value); {
		case ok:
			run = append(run, u)
		case u.value != ' ' && u.value != ':':
			end()
		}
	}
	end()
	return slices.DeleteFunc(out[:], func(text decoded) bool { return len(text) == 0 })
}

// appendBytes appends the bytes that pairs of hexadecimal digits stand for.
func appendBytes(out, digits decoded) decoded {
	for i := 0; i+1 < len(digits); i += 2 {
		value, _ := digits.hex(i, 2)
		out = append(out, newUnit(int16(value&0xff), digits[i].span.from, digits[i+1].span.to))
	}
	return out
}

// base64 returns what the text is in base64 of the standard and the URL alphabet.
// Other text may stand before what was encoded, so that each group of four
// characters may begin at any of them. Spaces, which are line ends in a Printable
// text, do not end it.
func (d decoded) base64() []decoded {
	var out [4]decoded
	var run []unit
	end := func() {
		for offset := range min(len(out), len(run)) {
			out[offset] = append(appendDecoded(out[offset], run[offset:]), newUnit(gap, 0, 0))
		}
		run = run[:0]
	}
	for _, u := range d {
		switch value, ok := base64Digit(u.value); {
		case ok:
			run = append(run, newUnit(value, u.span.from, u.span.to))
		case u.value != ' ' && u.value != '\n' && u.value != '\r':
			end()
		}
	}
	end()
	var all []decoded
	for _, text := range out {
		if len(text) > 0 {
			all = append(all, text)
		}
	}
	return all
}

// appendDecoded appends the bytes that digits of 6 bits stand for.
func appendDecoded(out decoded, digits []unit) decoded {
	for i := 0; i+1 < len(digits); i++ {
		a, b := digits[i], digits[i+1]
		var value int16
		switch i % 4 {
		case 0:
			value = a.value<<2 | b.value>>4
		case 1:
			value = a.value&0xf<<4 | b.value>>2
		case 2:
			value = a.value&0x3<<6 | b.value
		case 3:
			continue
		}
		out = append(out, newUnit(value, a.span.from, b.span.to))
	}
	return out
}

func base64Digit(c int16) (int16, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A', true
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26, true
	case c >= '0' && c <= '9':
		return c - '0' + 52, true
	case c == '+' || c == '-':
		return 62, true
	case c == '/' || c == '_':
		return 63, true
	}
	return 0, false
}
