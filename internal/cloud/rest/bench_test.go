package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// servedPage is a page of n servers as an extended cloud sends it.
func servedPage(n int) string {
	var b strings.Builder
	b.WriteString(`{"servers":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"6b1f4a52-0000-4000-8000-%012d","name":"web-%d","labels":{"samplecontroller.k8s.io/uid":"9c0d7d3e-0000-4000-8000-%012d",`+
			`"samplecontroller.k8s.io/cluster":"2a4cfe06-3a05-4a43-a1c5-b8b3f6a1a6c5","samplecontroller.k8s.io/namespace":"team-a","samplecontroller.k8s.io/name":"web-%d"},`+
			`"state":"ACTIVE","cpu":2,"memory":4,"template":"small","folder":"team-a","host":"esxi-%d","cpuUtilization":37,"cpuUsageMHz":100,"memoryUsageMB":12,`+
			`"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:06.5Z"}`, i, i, i, i, i%20)
	}
	b.WriteString(`],"next":"m"}`)
	return b.String()
}

func BenchmarkDecodePage(b *testing.B) {
	body := servedPage(1000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := pageOf(body); err != nil || len(got.Servers) != 1000 {
			b.Fatal(err)
		}
	}
}

// BenchmarkStreamPage reads a page as a listing of the inventory does: no server is kept.
func BenchmarkStreamPage(b *testing.B) {
	body := servedPage(1000)
	got := &answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := streamPage(listing(), got, newStream(strings.NewReader(body)), nil, noServers{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
