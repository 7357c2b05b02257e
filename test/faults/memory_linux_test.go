package faults

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// maxData limits the data segment of the manager, in bytes: the memory of the
	// Deployment.
	maxData = 1 << 30
	// maxMemory is what the manager may take at most beside the pages of its binary, in bytes.
	maxMemory = 145 << 20
	// maxListings and maxAnswers are how many hostile clouds there are at a time. Each
	// hostile listing uses a processor, and must end within the timeout of a call; runs
	// with other answers mostly wait.
	maxListings, maxAnswers = 3, 8
	// hostileListingsRead is how many listings are read at least: two are in memory from
	// the second on.
	hostileListingsRead = 3
)

// TestHostileCloudTakesBoundedMemory runs a manager with two clouds. One of them turns
// hostile, while VMs are created, changed and deleted on the other.
func TestHostileCloudTakesBoundedMemory(t *testing.T) {
	listings, answers := make(chan struct{}, maxListings), make(chan struct{}, maxAnswers)
	run := func(name string, c hostileCase, slots chan struct{}) {
		t.Run(name, func(tt *testing.T) {
			tt.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			checkHostile(newT(tt), c)
		})
	}
	from := seed(t)
	for _, name := range third(slices.Sorted(maps.Keys(hostileListings)), from, "listings") {
		run("listing: "+name, hostileListings[name], listings)
	}
	for _, name := range third(slices.Sorted(maps.Keys(hostileAnswers)), from, "answers") {
		run("answers to other calls: "+name, hostileAnswers[name], answers)
	}
}

func checkHostile(t *testkit.T, c hostileCase) {
	w := openWorld(t, setting{profile: extended, maxData: maxData})
	h, err := w.openHostile(t.Context(), c.profile)
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(h.Close()).To(Succeed()) })
	m, err := w.start()
	t.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"edited", "removed"} {
		t.Expect(w.perform(t.Context(), create(name))).To(Succeed())
	}
	if len(c.asked) > 0 {
		t.Expect(h.prepare(t.Context())).To(Succeed())
	}
	t.Eventually(h.prepared).Should(Succeed())
	t.Eventually(h.read).Should(testkit.BeReady())
	atRest := peakMemory(t, m)

	began := time.Now()
	t.Expect(h.turn(t.Context(), c)).To(Succeed())
	if len(c.asked) > 0 {
		t.Expect(h.use(t.Context())).To(Succeed())
	}
	polling, stop := context.WithCancel(t.Context())
	defer stop()
	go wait.UntilWithContext(polling, func(ctx context.Context) { _ = h.poll(ctx) }, 200*time.Millisecond)
	t.Eventually(func() []string { return h.notAsked(c.asked) }).Should(BeEmpty(), "calls without a hostile answer")
	ready := metav1.ConditionFalse
	if c.reason == pcapi.ConnectedReason {
		ready = metav1.ConditionTrue
	}
	t.Eventually(h.read).Should(And(
		testkit.HaveCondition("Ready", ready, c.reason, c.message),
		HaveField("Status.Servers.Known", BeNumerically(">=", c.known)),
	), "the hostile cloud is reported")
	reported := time.Since(began)

	for _, do := range []step{create("new"), edit("edited", `{"spec":{"cpu":2}}`), remove("removed", gone)} {
		t.Expect(w.perform(t.Context(), do)).To(Succeed(), "a VM of the other cloud")
	}
	t.Eventually(func() int { return h.CountCalls("GET", "/servers") }).Should(BeNumerically(">=", hostileListingsRead))
	stop()
	t.Expect(m.Ended()).To(BeFalse(), "the manager runs")
	t.Expect(w.violations()).To(BeEmpty())
	peak := peakMemory(t, m)
	t.Logf("the manager took %d MiB, and %d MiB before; reported after %s, all after %s",
		peak>>20, atRest>>20, reported.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	t.Expect(peak).To(BeNumerically("<", maxMemory), "the peak of the manager's memory")
}

var (
	highWaterMark = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
	ofFiles       = regexp.MustCompile(`(?m)^RssFile:\s+(\d+) kB$`)
)

// peakMemory returns the largest resident size that the process had, in bytes, without the pages of its binary: how many of these
// are resident depends on how the kernel has cached the file.
func peakMemory(t *testkit.T, m *testkit.Process) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.ID()))
	t.Expect(err).NotTo(HaveOccurred())
	kib := func(field *regexp.Regexp) int64 {
		found := field.FindSubmatch(status)
		t.Expect(found).To(HaveLen(2), "%s", status)
		n, err := strconv.ParseInt(string(found[1]), 10, 64)
		t.Expect(err).NotTo(HaveOccurred())
		return n
	}
	return (kib(highWaterMark) - kib(ofFiles)) << 10
}

// cpuTime returns the processor time that the process has used, to a hundredth of a second.
func cpuTime(t *testkit.T, m *testkit.Process) time.Duration {
	t.Helper()
	const utime, perSecond = 11, 100 // the index after the name of the binary, and the ticks, which the kernel fixes; see proc_pid_stat(5)
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.ID()))
	t.Expect(err).NotTo(HaveOccurred())
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	t.Expect(len(fields)).To(BeNumerically(">", utime+1), "%s", stat)
	ticks := 0
	for _, field := range fields[utime : utime+2] {
		n, err := strconv.Atoi(field)
		t.Expect(err).NotTo(HaveOccurred())
		ticks += n
	}
	return time.Duration(ticks) * time.Second / perSecond
}
