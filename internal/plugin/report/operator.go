package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
)

// maxLine bounds a line of a log or of metrics, in bytes: what is longer is left out, since
// a part of it could not be searched for secrets.
const maxLine = 1 << 20

// maxLog bounds the log of a container, in bytes.
const maxLog = 64 << 20

// versions writes the versions of plugin, API server and operator.
func (c *collection) versions(ctx context.Context, server, version string) error {
	managers := map[string]wire.Version{}
	o, err := c.from.operator(ctx, c.flags())
	if err == nil {
		err = o.Versions(ctx, func(manager string, version wire.Version) error {
			managers[manager] = version
			return nil
		})
		o.Close()
	}
	if err != nil {
		c.leaveOut("versions.json: of the operator", err)
	}
	return c.file(ctx, "versions.json", func(out io.Writer) (int, error) {
		return 0, writeJSON(out, map[string]any{
			"plugin": version, "platform": runtime.GOOS + "/" + runtime.GOARCH, "go": runtime.Version(), "apiServer": server, "operator": managers,
		})
	})
}

// metrics writes those of each manager.
func (c *collection) metrics(ctx context.Context) error {
	collect := c.metricsOf
	if c.withoutClouds != nil {
		collect = c.blind
	}
	err := collect(ctx)
	if err != nil && !isWriteError(err) && ctx.Err() == nil {
		c.leaveOut("operator/metrics", err)
		err = nil
	}
	return err
}

func (c *collection) metricsOf(ctx context.Context) error {
	o, err := c.from.operator(ctx, c.flags())
	if err != nil {
		return err
	}
	defer o.Close()
	return o.Metrics(ctx, func(manager string, metrics io.Reader) error {
		return c.file(ctx, "operator/metrics/"+fileName(manager)+".txt", func(out io.Writer) (int, error) {
			return c.lines(out, metrics)
		})
	})
}

// blind says why texts of the operator are left out.
func (c *collection) blind(context.Context) error {
	return fmt.Errorf("the Clouds could not be read, so that their endpoints could not be removed: %w", c.withoutClouds)
}

// logs writes the logs of all containers of the operator, current and previous.
func (c *collection) logs(ctx context.Context) error {
	if c.withoutClouds != nil {
		c.leaveOut("operator/logs", c.blind(ctx))
		return nil //nolint:nilerr // the manifest of the report says why the logs are left out
	}
	var failed error
	err := plugin.Each(ctx, c.from.client, &corev1.PodList{}, func(pod *corev1.Pod) error {
		for i := range pod.Spec.Containers {
			if failed = c.container(ctx, pod, pod.Spec.Containers[i].Name); failed != nil {
				return failed
			}
		}
		return nil
	}, client.InNamespace(c.operatorNamespace), operatorLabel)
	if failed != nil {
		return failed
	}
	if err != nil {
		c.leaveOut("operator/logs", err)
	}
	return nil
}

// container writes the log of a container, and that before its last restart if there was one.
func (c *collection) container(ctx context.Context, pod *corev1.Pod, name string) error {
	kinds := []bool{false}
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name && s.RestartCount > 0 {
			kinds = append(kinds, true)
		}
	}
	for _, previous := range kinds {
		file := "operator/logs/" + pod.Name + "/" + name
		if previous {
			file += ".previous"
		}
		err := c.file(ctx, file+".log", func(out io.Writer) (int, error) {
			log, err := c.from.logs(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{
				Container: name, Previous: previous, Timestamps: true, LimitBytes: new(int64(maxLog)),
				SinceSeconds: new(int64(c.since.Seconds())), TailLines: &c.tail,
			})
			if err != nil {
				return 0, fmt.Errorf("read the log: %w", err)
			}
			defer log.Close()
			return c.lines(out, log)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lines copies lines without what may be secret.
func (c *collection) lines(out io.Writer, in io.Reader) (int, error) {
	reader, writer := bufio.NewReaderSize(in, maxLine), bufio.NewWriter(out)
	n, inPEM := 0, false
	for {
		line, err := reader.ReadSlice('\n')
		n++
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = reader.ReadSlice('\n')
			}
			fmt.Fprintf(writer, "(a line of more than %d bytes is left out)\n", maxLine)
		case inPEM && ofPEM.Match(line):
			n--
			inPEM = !strings.Contains(string(line), "-----END")
		case len(line) > 0:
			inPEM = begun(string(line))
			fmt.Fprintln(writer, c.redact.text(c.decoded(strings.TrimRight(string(line), "\r\n"))))
		default:
			n--
		}
		if errors.Is(err, io.EOF) {
			return n, writer.Flush()
		}
		if err != nil {
			return n, errors.Join(fmt.Errorf("incomplete after %d lines: %w", n, err), writer.Flush())
		}
	}
}

// ofPEM matches a line of a key or certificate after its first one, behind a time that the
// log has of it: base64, a header, or the end.
var ofPEM = regexp.MustCompile(`^(\S+Z )?([A-Za-z0-9+/=\\ ]*|[A-Za-z-]+: .*|-----END.*)\r?\n?$`)

// begun reports whether a key or certificate begins in a line and ends in a later one.
func begun(line string) bool {
	return strings.LastIndex(line, "-----BEGIN") > strings.LastIndex(line, "-----END")
}

// decoded rewrites a line of JSON that has escapes such as \u002e, behind which a host could
// not be found. Any other line is returned as it is.
func (c *collection) decoded(line string) string {
	if !strings.Contains(line, `\u`) {
		return line
	}
	stamp, text, found := strings.Cut(line, " ")
	if !found || !strings.HasPrefix(text, "{") {
		stamp, text = "", line
	}
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return line
	}
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(c.redact.fields(object)) != nil {
		return line
	}
	return strings.TrimSpace(stamp + " " + out.String())
}

// fileName is the name of a manager in the names of files.
func fileName(manager string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(manager)
}
