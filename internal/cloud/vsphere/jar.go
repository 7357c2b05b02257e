package vsphere

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
)

// jar holds the cookie of the session. It can be emptied while requests use it.
type jar struct {
	mu      sync.Mutex
	cookies http.CookieJar
}

func (j *jar) current() http.CookieJar {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cookies
}

func (j *jar) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cookies, _ = cookiejar.New(nil) // never fails
}

// SetCookies stores the cookies of an answer.
func (j *jar) SetCookies(u *url.URL, cookies []*http.Cookie) { j.current().SetCookies(u, cookies) }

// Cookies returns those of a request.
func (j *jar) Cookies(u *url.URL) []*http.Cookie { return j.current().Cookies(u) }
