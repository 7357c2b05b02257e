// Package operator asks the managers of the operator for what no Kubernetes object holds,
// by their diagnostics endpoint: through a forwarded port, or at a URL.
//
//	operator.go  which manager answers
//	pods.go      the pods of the operator, and ports that are forwarded to them
//	get.go       requests and their errors
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
)

// Rights is what the Long text of a command says of the rights that it needs for this.
const Rights = `list pods and create pods/portforward in the namespace of the operator, through which it is
asked; the Role diagnostics-reader has both. With --operator-url, none.`

// Flags are how the operator is found.
type Flags struct {
	// Namespace is that of the operator; empty for DefaultNamespace. Pods of no other namespace
	// are asked: in theirs, tenants could run pods that look like the operator.
	Namespace string
	// URL is where a manager serves diagnostics; empty to forward ports.
	URL string
}

// Bind adds the flags to a command.
func (f *Flags) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.Namespace, "operator-namespace", DefaultNamespace, "the namespace of the operator")
	flags.StringVar(&f.URL, "operator-url", "", "where the operator serves diagnostics, such as http://127.0.0.1:8082, if it runs outside of the cluster")
}

// Operator is the managers that answer. Close it.
type Operator struct{ managers []*manager }

// manager is one process of the operator.
type manager struct {
	// name is the pod as namespace/name, or the URL.
	name string
	base *url.URL
	stop func()
}

// Connect finds the managers. It fails with what the user can do if there is none that can be
// asked.
func Connect(ctx context.Context, env *plugin.Env, flags Flags) (*Operator, error) {
	if flags.URL == "" {
		return forwardAll(ctx, env, flags.Namespace)
	}
	base, err := url.Parse(strings.TrimRight(flags.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" {
		return nil, fmt.Errorf("--operator-url %q is no URL: set one such as http://127.0.0.1:8082", flags.URL)
	}
	if base.User != nil {
		return nil, errors.New("--operator-url must have no user and password: the endpoint needs none")
	}
	return &Operator{managers: []*manager{{name: flags.URL, base: base, stop: func() {}}}}, nil
}

// Close ends the forwarding.
func (o *Operator) Close() {
	for _, m := range o.managers {
		m.stop()
	}
}

// Clouds returns the names of the Clouds of all managers that lead, sorted.
func (o *Operator) Clouds(ctx context.Context) ([]string, error) {
	var names []string
	var failed error
	leads := false
	for _, m := range o.managers {
		var of wire.Clouds
		switch err := m.read(ctx, wire.AllClouds, &of); {
		case err == nil:
			leads, names = true, append(names, of.Names...)
		case reason(err) == wire.NotLeading:
			failed = worse(failed, err)
		default:
			return nil, err // the list would not be complete
		}
	}
	if !leads {
		return nil, failed
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Cloud returns what the manager of a Cloud knows of it.
func (o *Operator) Cloud(ctx context.Context, name string) (wire.Cloud, error) {
	var c wire.Cloud
	_, err := o.ofCloud(ctx, name, &c)
	return c, err
}

// ofCloud asks all managers for a Cloud, and returns the one that answers.
func (o *Operator) ofCloud(ctx context.Context, name string, into *wire.Cloud) (*manager, error) {
	var failed error
	for _, m := range o.managers {
		err := m.read(ctx, wire.CloudsPath+url.PathEscape(name), into)
		if err == nil {
			return m, nil
		}
		failed = worse(failed, err)
	}
	return nil, failed
}

// Servers calls each with the servers of a Cloud in a state, sorted by name and then by id,
// and returns the rest of the answer.
func (o *Operator) Servers(ctx context.Context, name, state string, each func(wire.Server) error) (wire.Servers, error) {
	var c wire.Cloud
	m, err := o.ofCloud(ctx, name, &c)
	if err != nil {
		return wire.Servers{}, err
	}
	body, err := m.get(ctx, wire.CloudsPath+url.PathEscape(name)+"/servers?state="+url.QueryEscape(state))
	if err != nil {
		return wire.Servers{}, err
	}
	defer body.Close()
	return readServers(json.NewDecoder(body), each)
}

// Steps returns the last steps of an object that uses a Cloud, the oldest first. The
// namespace of a Cloud is empty.
func (o *Operator) Steps(ctx context.Context, cloud, kind, namespace, name string) ([]wire.Step, error) {
	var c wire.Cloud
	m, err := o.ofCloud(ctx, cloud, &c)
	if err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = wire.NoNamespace
	}
	var object wire.Object
	err = m.read(ctx, wire.ObjectsPath+url.PathEscape(kind)+"/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &object)
	return object.Steps, err
}

// Metrics calls each with the metrics of each manager, and with its pod as namespace/name or
// its URL.
func (o *Operator) Metrics(ctx context.Context, each func(manager string, metrics io.Reader) error) error {
	return o.every(ctx, wire.MetricsPath, each)
}

// Versions calls each with the version of each manager.
func (o *Operator) Versions(ctx context.Context, each func(manager string, version wire.Version) error) error {
	return o.every(ctx, wire.VersionPath, func(manager string, body io.Reader) error {
		var version wire.Version
		if err := json.NewDecoder(body).Decode(&version); err != nil {
			return unreadable(manager, err)
		}
		return each(manager, version)
	})
}

func (o *Operator) every(ctx context.Context, path string, each func(manager string, body io.Reader) error) error {
	for _, m := range o.managers {
		body, err := m.get(ctx, path)
		if err != nil {
			return err
		}
		err = each(m.name, body)
		_ = body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
