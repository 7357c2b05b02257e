package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
)

// usage holds CPU times: those of the API server, of the operator, and of this process,
// which creates and deletes objects and runs the bare loop.
type usage struct{ server, operator, here time.Duration }

func (u usage) total() time.Duration { return u.server + u.operator + u.here }

func (u usage) plus(other usage) usage {
	return usage{u.server + other.server, u.operator + other.operator, u.here + other.here}
}

func (u usage) less(other usage) usage {
	return usage{u.server - other.server, u.operator - other.operator, u.here - other.here}
}

// each returns the CPU times of one of n VMs.
func (u usage) each(n int) string {
	of := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(n) }
	return fmt.Sprintf("CPU of API server %.1f ms, operator %.1f ms, bench %.1f ms", of(u.server), of(u.operator), of(u.here))
}

// usage returns the CPU times until now. managers are those of the operator that run.
func (s *stage) usage(ctx context.Context, managers ...*manager) (usage, error) {
	u := usage{here: ownCPU()}
	for _, m := range managers {
		used, err := m.cpu(ctx)
		if err != nil {
			return usage{}, err
		}
		u.operator += used
	}
	var err error
	u.server, err = s.serverCPU(ctx)
	return u, err
}

// serverCPU returns the CPU time of the API server.
func (s *stage) serverCPU(ctx context.Context) (time.Duration, error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return 0, err
	}
	page, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	seconds, err := sum(page, "process_cpu_seconds_total")
	return time.Duration(seconds * float64(time.Second)), err
}
