package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// config has the values of the flags.
type config struct {
	addr            string
	adminAddr       string
	handoverAddr    string
	tlsCert, tlsKey string
	takeOver        string
	showVersion     bool
	options         mockcloud.Options
}

const usage = `mockcloud serves a private cloud for development and tests.

  mockcloud --profile=core
  mockcloud --data=/var/lib/mockcloud.db --token=secret --build-time=5s
  mockcloud --profile=core --quirks=readLag=5s,normalizeNames,wrongTypes
  mockcloud --capability=labels=off --fault='{"match":{"method":"POST"},"status":503,"retryAfter":"3"}'

Flags:
`

func parse(args []string, out *os.File) (config, error) {
	c := config{options: mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}}}
	o := &c.options
	flags := flag.NewFlagSet("mockcloud", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "listen on `host:port`; with port 0, on a free port, which is logged")
	flags.StringVar(&c.adminAddr, "admin-bind-address", "127.0.0.1:8081",
		"serve the admin endpoints, which need no credentials, on `host:port`; 0 disables them")
	flags.StringVar(&c.handoverAddr, "handover-bind-address", "0",
		"serve the handover for --take-over of another process on `host:port`; 0 disables it")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "serve HTTPS with the certificate in this PEM `file`")
	flags.StringVar(&c.tlsKey, "tls-key", "", "the key of --tls-cert, a PEM `file`")
	flags.StringVar(&o.DataFile, "data", "", "store all data in this bbolt `file` (default in memory)")
	flags.StringVar(&c.takeOver, "take-over", "", "if the file of --data does not exist, take over the data of the mock cloud whose handover is at this `URL`, if there is one")
	flags.Func("profile", "REST API profile: `core or extended` (default extended)", func(text string) error {
		o.Profile = mockcloud.Profile(text)
		return nil
	})
	flags.Func("capability", "switch a capability: `name=on|off`, comma separated or repeated (default all on)",
		func(text string) error { return parseCapabilities(o.Capabilities, text) })
	flags.BoolVar(&c.showVersion, "version", false, "print the version and exit")
	behaviourFlags(flags, o)
	accessFlags(flags, o)
	flags.Func("fault", "a fault that is active from the start, as `JSON`; repeatable", func(text string) error {
		var fault mockcloud.Fault
		if err := decode(text, &fault); err != nil {
			return err
		}
		o.Faults = append(o.Faults, fault)
		return nil
	})
	quirks := ""
	flags.Func("quirks", "how the cloud differs from its document: `name[=value]`, comma separated or repeated (docs/mock-cloud.md)",
		func(text string) (err error) {
			quirks += "," + text
			o.Quirks, err = mockcloud.ParseQuirks(quirks)
			return err
		})
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return c, fmt.Errorf("--tls-cert and --tls-key go together")
	}
	if c.addr == off {
		return c, fmt.Errorf("--addr is an address: only the other ports can be disabled")
	}
	if c.takeOver != "" && o.DataFile == "" {
		return c, fmt.Errorf("--take-over needs --data")
	}
	return c, nil
}

func behaviourFlags(flags *flag.FlagSet, o *mockcloud.Options) {
	duration(flags, &o.BuildTime, "build-time", "how long a new server is BUILDING (default 0s: 201 at once)")
	duration(flags, &o.DeleteTime, "delete-time", "how long a deleted server is DELETING (default 0s: 204 at once)")
	duration(flags, &o.OperationTime, "operation-time", "how long a change of a server takes that is an operation; needs the capability operations (default 0s: no operations)")
	flags.StringVar(&o.FailOperations, "fail-operations", "", "a `name` or glob: operations about servers of these names fail")
	flags.BoolVar(&o.ResizeStopped, "resize-stopped", false, "the size of a server can be changed only while it is stopped")
	duration(flags, &o.ShutdownTime, "shutdown-time", "how long a guest takes to shut down when it is asked to (default 0s)")
	flags.StringVar(&o.IgnoreShutdown, "ignore-shutdown", "", "a `name` or glob: the guests of these servers do not shut down when they are asked to")
	flags.StringVar(&o.NoGuestAgent, "no-guest-agent", "", "a `name` or glob: the guests of these servers cannot be asked to shut down")
	duration(flags, &o.Latency, "latency", "delay at the start of every call (default 0s)")
	flags.StringVar(&o.Utilisation, "utilisation", "fixed:50", "CPU utilization `model`: fixed:N (percent), sine[:PERIOD] or walk[:SEED]")
	flags.IntVar(&o.Quota, "quota", 0, "maximum number of servers; 0 is no limit")
	flags.IntVar(&o.SeedServers, "seed-servers", 0, "number of servers in a new store that belong to no client")
	flags.Func("prohibited-name", "a `name` or glob that may not be used; repeatable, empty for none (default forbidden)",
		func(text string) error {
			if o.ProhibitedNames == nil {
				o.ProhibitedNames = []string{}
			}
			if text != "" {
				o.ProhibitedNames = append(o.ProhibitedNames, text)
			}
			return nil
		})
	appendTo(flags, &o.ProhibitedTemplates, "prohibited-template", "a `template` or glob that may not be used; repeatable")
	appendTo(flags, &o.Templates, "template", "a `template` that exists; repeatable (default every template exists)")
	appendTo(flags, &o.ExternalNetworks, "external-network", "the `name` of a network that routers connect to, and that has public addresses; repeatable (default ext-net)")
	flags.Func("host", "a host: `name[:gpu[:hours[:zone]]]` such as node-1:true:24; repeatable (default four hosts)",
		func(text string) error {
			host, err := parseHost(text)
			o.Hosts = append(o.Hosts, host)
			return err
		})
}

func accessFlags(flags *flag.FlagSet, o *mockcloud.Options) {
	flags.StringVar(&o.Token, "token", "", "require this bearer `token`, which does not expire")
	flags.StringVar(&o.Username, "username", "", "require a session, which is opened with this `name`")
	flags.StringVar(&o.Password, "password", "", "the `password` of --username")
	duration(flags, &o.SessionTTL, "session-ttl", "how long a session lasts (default 1h)")
	duration(flags, &o.KeyRetention, "key-retention", "how long an idempotency key is kept after its server is deleted (default 24h)")
	flags.IntVar(&o.CallLog, "call-log", 1000, "number of calls that GET /calls returns")
}

func duration(flags *flag.FlagSet, into *mockcloud.Duration, name, usage string) {
	flags.Func(name, "`duration`: "+usage, func(text string) error {
		parsed, err := time.ParseDuration(text)
		*into = mockcloud.Duration(parsed)
		return err
	})
}

func appendTo(flags *flag.FlagSet, into *[]string, name, usage string) {
	flags.Func(name, usage, func(text string) error {
		*into = append(*into, text)
		return nil
	})
}

func parseCapabilities(into map[mockcloud.Capability]bool, text string) error {
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		switch value {
		case "on", "true":
			into[mockcloud.Capability(name)] = true
		case "off", "false":
			into[mockcloud.Capability(name)] = false
		default:
			return fmt.Errorf("%q is not name=on or name=off", item)
		}
	}
	return nil
}

func parseHost(text string) (mockcloud.Host, error) {
	parts := strings.Split(text, ":")
	host := mockcloud.Host{Name: parts[0]}
	if host.Name == "" || len(parts) > 4 {
		return host, fmt.Errorf("%q is not name[:gpu[:hours[:zone]]]", text)
	}
	var err error
	if len(parts) > 1 {
		if host.GPU, err = strconv.ParseBool(parts[1]); err != nil {
			return host, fmt.Errorf("%q: gpu is true or false", text)
		}
	}
	if len(parts) > 2 {
		if host.AvailableHours, err = strconv.Atoi(parts[2]); err != nil {
			return host, fmt.Errorf("%q: hours is a number", text)
		}
	}
	if len(parts) > 3 {
		host.Zone = parts[3]
	}
	return host, nil
}

func decode(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
