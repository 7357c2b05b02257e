package rest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The functions of this file walk JSON whose syntax was checked before. Unlike
// encoding/json they compare names exactly, so that a cloud's further field
// "Name" is not taken for "name", and leave the types of fields to the caller.

// fields calls f with each field of data and reports whether data is an object.
// Of fields with the same name, the last one counts.
func fields(data []byte, f func(name, value []byte)) bool {
	data = trim(data)
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	data = trim(data[1:])
	for len(data) > 0 && data[0] == '"' {
		var name, value []byte
		name, data = first(data)
		if data = trim(data); len(data) < 2 {
			return true
		}
		value, data = first(trim(data[1:]))
		f(unquoted(name), value)
		data = next(data)
	}
	return true
}

// values calls f with each value of data and reports whether data is an array.
func values(data []byte, f func(value []byte)) bool {
	data = trim(data)
	if len(data) == 0 || data[0] != '[' {
		return false
	}
	data = trim(data[1:])
	for len(data) > 0 && data[0] != ']' {
		var value []byte
		value, data = first(data)
		f(value)
		data = next(data)
	}
	return true
}

// next returns what follows the comma or the bracket after a value.
func next(data []byte) []byte {
	if data = trim(data); len(data) > 0 && data[0] == ',' {
		return trim(data[1:])
	}
	return data
}

// first splits data after its first value.
func first(data []byte) (value, rest []byte) {
	end := len(data)
	switch {
	case len(data) == 0:
	case data[0] == '"':
		end = endOfString(data)
	case data[0] == '{' || data[0] == '[':
		end = endOfNested(data)
	default:
		if at := bytes.IndexAny(data, ",]} \t\r\n"); at > 0 {
			end = at
		}
	}
	return data[:end], data[end:]
}

// endOfString returns the length of the string that data begins with.
func endOfString(data []byte) int {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// endOfNested returns the length of the object or array that data begins with.
func endOfNested(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += endOfString(data[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(data)
}

// trim returns data without the space that it begins with.
func trim(data []byte) []byte {
	for i, b := range data {
		if b != ' ' && b != '\t' && b != '\r' && b != '\n' {
			return data[i:]
		}
	}
	return nil
}

// unquote returns the text of a JSON string. As in encoding/json, what is not
// UTF-8 becomes U+FFFD.
func unquote(data []byte) string {
	if inner, ok := plain(data); ok {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(data, &text)
	return text
}

// unquoted is unquote without a copy, where the text is written as it is.
func unquoted(data []byte) []byte {
	if inner, ok := plain(data); ok {
		return inner
	}
	return []byte(unquote(data))
}

// plain returns the text of a JSON string without a copy, where it is written as it is.
func plain(data []byte) ([]byte, bool) {
	if len(data) < 2 || bytes.IndexByte(data, '\\') >= 0 || !utf8.Valid(data) {
		return nil, false
	}
	return data[1 : len(data)-1], true
}

func isNull(value []byte) bool { return len(value) == 0 || value[0] == 'n' }

func isText(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// isInteger reports whether value is a number without fraction and exponent.
func isInteger(value []byte) bool {
	digits := bytes.TrimPrefix(value, []byte("-"))
	return len(digits) > 0 && !bytes.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// byteOrderMark is what some clouds begin a text in UTF-8 with.
var byteOrderMark = []byte("\uFEFF")

// startsAsHTML reports whether body begins as a page of HTML does.
func startsAsHTML(body []byte) bool {
	body = trim(bytes.TrimPrefix(body, byteOrderMark))
	for _, start := range []string{"<!doctype html", "<html"} {
		if len(body) >= len(start) && bytes.EqualFold(body[:len(start)], []byte(start)) {
			return true
		}
	}
	return false
}

// startsAsJSON reports whether body begins as an object or an array does.
func startsAsJSON(body []byte) bool {
	body = trim(bytes.TrimPrefix(body, byteOrderMark))
	return len(body) > 0 && (body[0] == '{' || body[0] == '[')
}
