package main

import (
	"flag"
	"os"
	"testing"
)

func TestFlagsThatASubscriptionSetsByTheEnvironment(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{name: "no flag: the environment", want: "/ca/ca.crt"},
		{name: "a flag: the flag", want: "/other", args: []string{"--webhook-client-ca=/other"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			set, args := flag.CommandLine, os.Args
			t.Cleanup(func() { flag.CommandLine, os.Args = set, args })
			flag.CommandLine, os.Args = flag.NewFlagSet("manager", flag.ContinueOnError), append([]string{"manager"}, tc.args...)
			t.Setenv("WEBHOOK_CLIENT_CA", "/ca/ca.crt")
			t.Setenv("PROBE_NETWORKS", "10.20.0.0/16")
			f := parseFlags()
			if f.webhookClientCA != tc.want || f.probeNetworks != "10.20.0.0/16" {
				t.Errorf("--webhook-client-ca %q, --probe-networks %q, want %q and those of the environment", f.webhookClientCA, f.probeNetworks, tc.want)
			}
		})
	}
}
