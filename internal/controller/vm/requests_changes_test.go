package vm

import (
	"maps"
	"slices"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestRequestsOfChanges(t *testing.T) {
	stopped, asleep := inState(cloud.StateStopped), inState(cloud.StateSuspended)
	server := func(change ...func(*cloud.Server)) *cloud.Server { return new(serverWith(change...)) }
	small := func(s *cloud.Server) { s.CPU, s.MemoryMiB, s.Flavor = 1, 1<<10, "small" }
	tagged := withTags("env", "prod", "new", "yes")
	hadTags := func(s *cloud.Server) {
		s.Labels = maps.Clone(s.Labels)
		inventory.WithTags(s.Labels, map[string]string{"env": "dev", "team": "a"})
	}
	hard := mode(pcapi.PowerOffModeHard)
	soft := mode(pcapi.PowerOffModeSoft)
	bigger := func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(4), pcapi.GiB(8) }
	oneGiB := withMemory(1)
	hadClass := func(vm *pcapi.VM) { vm.Status.Class = classWith("c1", 2, 4); vm.Status.Class.Flavor = "small" }
	allows := func(h *harness) { h.allowFlavors("*") }
	needsStop := func(h *harness) { h.cloud.SetNeedsStop(true) }
	keepsSize := func(h *harness) { h.cloud.SetKeepsSize(true) }
	ignores := func(h *harness) { h.cloud.Ignore(cloudfake.UpdateServer) }
	operates := func(h *harness) { h.cloud.SetOperating(true) }
	guests := func(do cloudfake.Guests) func(*harness) { return func(h *harness) { h.cloud.SetGuests(do) } }
	fails := func(kind cloud.Kind) func(*harness) {
		return func(h *harness) {
			h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: kind, Op: `update server "s1"`, Detail: "refused"}, false)
		}
	}
	both := func(first, second func(*harness)) func(*harness) {
		return func(h *harness) { first(h); second(h) }
	}
	operatingReach := cloud.NewCapabilities(append(slices.Clone(operating), cloud.PublicAddresses)...)
	whole := []func(*pcapi.VM){bigger, tagged, twoDisks()}
	has := []func(*cloud.Server){oneGiB, hadTags, hasDisks("data=1024")}
	runRequests(t, "change", map[string]requestCase{
		"nothing":                 {caps: allOf(), vm: onRecord(), server: server()},
		"cpu":                     {caps: everything, vm: onRecord(fourCores), server: server()},
		"memory":                  {caps: everything, vm: onRecord(memory("1536Mi")), server: server(oneGiB)},
		"cpu and memory":          {caps: everything, vm: onRecord(bigger), server: server(oneGiB)},
		"size that is not shown":  {caps: everything, vm: onRecord(bigger), server: server(withCores(0))},
		"size without resize":     {caps: without(cloud.Resize), vm: onRecord(bigger), server: server(oneGiB)},
		"class size":              {caps: everything, vm: onRecord(ofClass("plain")), server: server(oneGiB)},
		"class without resize":    {caps: without(cloud.Resize), vm: onRecord(hasClass("plain", 4, 8)), server: server(oneGiB)},
		"flavor":                  {caps: withFlavors, vm: onRecord(hadClass, ofClass("c2")), server: server(small)},
		"flavor that is not set":  {caps: withFlavors, vm: onRecord(hadClass, ofClass("c2")), server: server(small), before: keepsSize},
		"flavor that is gone":     {caps: withFlavors, vm: onRecord(hadClass, ofClass("c3")), server: server(small)},
		"flavor of a stopped one": {caps: withFlavors, vm: onRecord(hadClass, ofClass("c2")), server: server(small, stopped)},
		"flavor that needs a stop": {
			caps: withFlavors, vm: onRecord(hadClass, ofClass("c2"), restartAllowed), server: server(small), before: needsStop,
		},
		"flavor of a suspended one": {caps: allOf(), vm: onRecord(hadClass, ofClass("c2"), suspended, restartAllowed), server: server(small, asleep)},

		"own flavor":                   {caps: withFlavors, vm: onRecord(ofFlavor("large")), server: server(small), before: allows},
		"own flavor and off":           {caps: withFlavors, vm: onRecord(ofFlavor("large"), poweredOff), server: server(small), before: allows},
		"own flavor and on":            {caps: withFlavors, vm: onRecord(ofFlavor("large")), server: server(small, stopped), before: allows},
		"own flavor of another class":  {caps: withFlavors, vm: onRecord(hadClass, ofFlavor("large")), server: server(small), before: allows},
		"own flavor that is gone":      {caps: withFlavors, vm: onRecord(ofFlavor("gone")), server: server(small), before: allows},
		"own flavor that is there":     {caps: withFlavors, vm: onRecord(ofFlavor("small")), server: server(small)},
		"own flavor without resize":    {caps: cloud.NewCapabilities(append(without(cloud.Resize), cloud.Flavors)...), vm: onRecord(ofFlavor("large")), server: server(small), before: allows},
		"own flavor on one without":    {caps: everything, vm: onRecord(ofFlavor("large"), poweredOff, hard), server: server(), before: allows},
		"own flavor that needs a stop": {caps: withFlavors, vm: onRecord(ofFlavor("large"), restartAllowed), server: server(small), before: both(allows, needsStop)},
		"own flavor not allowed": {
			caps: withFlavors, vm: onRecord(ofFlavor("large"), restartAllowed, poweredOff, hard, twoDisks()), server: server(small, hasDisks("data=1024")),
		},
		"own flavor not allowed, asleep": {caps: allOf(), vm: onRecord(ofFlavor("large"), suspended, restartAllowed), server: server(small, asleep)},
		"size of a flavor removed":       {caps: withFlavors, vm: onRecord(bigger), server: server(small)},

		"size and on":                       {caps: withSuspend, vm: onRecord(bigger), server: server(oneGiB, stopped)},
		"size and on from suspended":        {caps: withSuspend, vm: onRecord(bigger), server: server(oneGiB, asleep)},
		"size and off hard":                 {caps: withSuspend, vm: onRecord(bigger, poweredOff, hard), server: server(oneGiB)},
		"size and off by the guest":         {caps: withSuspend, vm: onRecord(bigger, poweredOff), server: server(oneGiB)},
		"size and off without guests":       {caps: everything, vm: onRecord(bigger, poweredOff), server: server(oneGiB)},
		"size and off from suspended":       {caps: withSuspend, vm: onRecord(bigger, poweredOff), server: server(oneGiB, asleep)},
		"size and suspended":                {caps: withSuspend, vm: onRecord(bigger, suspended), server: server(oneGiB)},
		"size and suspended from stopped":   {caps: withSuspend, vm: onRecord(bigger, suspended), server: server(oneGiB, stopped)},
		"size of a suspended one":           {caps: withSuspend, vm: onRecord(bigger, suspended), server: server(oneGiB, asleep)},
		"size of a suspended one allowed":   {caps: withSuspend, vm: onRecord(bigger, suspended, restartAllowed), server: server(oneGiB, asleep)},
		"size of an unmanaged one":          {caps: withSuspend, vm: onRecord(bigger, unmanaged), server: server(oneGiB)},
		"size of an unmanaged one stopped":  {caps: withSuspend, vm: onRecord(bigger, unmanaged), server: server(oneGiB, stopped)},
		"size of an unmanaged one asleep":   {caps: withSuspend, vm: onRecord(bigger, unmanaged), server: server(oneGiB, asleep)},
		"size and off without power":        {caps: without(cloud.Power, cloud.PowerAtCreate), vm: onRecord(bigger, poweredOff), server: server(oneGiB)},
		"size and off without both":         {caps: without(cloud.Power, cloud.Resize), vm: onRecord(bigger, poweredOff), server: server(oneGiB)},
		"size that needs a stop":            {caps: withSuspend, vm: onRecord(bigger), server: server(oneGiB), before: needsStop},
		"size that needs an allowed stop":   {caps: everything, vm: onRecord(bigger, restartAllowed), server: server(oneGiB), before: needsStop},
		"size that needs a guest's stop":    {caps: withSuspend, vm: onRecord(bigger, restartAllowed), server: server(oneGiB), before: needsStop},
		"size that needs a stop and off":    {caps: withSuspend, vm: onRecord(bigger, poweredOff, hard), server: server(oneGiB), before: needsStop},
		"size that needs a stop no power":   {caps: without(cloud.Power), vm: onRecord(bigger, restartAllowed), server: server(oneGiB), before: needsStop},
		"size that needs a stop suspended":  {caps: withSuspend, vm: onRecord(bigger, suspended), server: server(oneGiB), before: needsStop},
		"size that needs a stop unmanaged":  {caps: withSuspend, vm: onRecord(bigger, unmanaged, restartAllowed), server: server(oneGiB), before: needsStop},
		"size that needs a stop operation":  {caps: operating, vm: onRecord(bigger, restartAllowed), server: server(oneGiB), before: both(needsStop, operates)},
		"size that is refused when stopped": {caps: everything, vm: onRecord(bigger, restartAllowed), server: server(oneGiB), before: both(needsStop, both(fails(cloud.NeedsStop), func(h *harness) { h.cloud.Fail(cloudfake.UpdateServer, nil, false); fails(cloud.Quota)(h) }))},
		"size that is refused":              {caps: everything, vm: onRecord(bigger), server: server(oneGiB), before: fails(cloud.Rejected)},
		"size that is refused before on":    {caps: everything, vm: onRecord(bigger), server: server(oneGiB, stopped), before: fails(cloud.Quota)},
		"size that is refused before suspended": {
			caps: withSuspend, vm: onRecord(bigger, suspended), server: server(oneGiB), before: fails(cloud.NoHost),
		},
		"size that is not set":           {caps: everything, vm: onRecord(bigger), server: server(oneGiB), before: keepsSize},
		"size that is not set before on": {caps: everything, vm: onRecord(bigger), server: server(oneGiB, stopped), before: keepsSize},
		"size that is ignored":           {caps: everything, vm: onRecord(bigger), server: server(oneGiB), before: ignores},
		"size by an operation":           {caps: operating, vm: onRecord(bigger), server: server(oneGiB), before: operates},
		"size by an operation with no effect": {
			caps: operating, vm: onRecord(bigger), server: server(oneGiB), before: both(operates, keepsSize),
		},

		"disks added":               {caps: everything, vm: onRecord(twoDisks()), server: server(hasDisks("logs=1024"))},
		"disks grown":               {caps: everything, vm: onRecord(twoDisks()), server: server(hasDisks("data=1024 logs=1024"))},
		"disks added and grown":     {caps: everything, vm: onRecord(twoDisks()), server: server(hasDisks("data=1024"))},
		"disks larger than wanted":  {caps: everything, vm: onRecord(twoDisks()), server: server(hasDisks("data=4096 logs=1024"))},
		"disks lost":                {caps: everything, vm: onRecord(twoDisks(), hadDisks(pcapi.VMDiskStatus{Name: "data", Size: "1Gi"}, pcapi.VMDiskStatus{Name: "logs", Size: "1Gi"})), server: server(hasDisks("data=1024"))},
		"disks without disks":       {caps: without(cloud.WithDisks), vm: onRecord(twoDisks(), fourCores), server: server()},
		"disks that need a stop":    {caps: everything, vm: onRecord(twoDisks(), restartAllowed), server: server(hasDisks("data=1024")), before: needsStop},
		"disks refused":             {caps: everything, vm: onRecord(withDisks(pcapi.VMDisk{Name: "data", Size: "64Ti"})), server: server(hasDisks("data=1024"))},
		"disks refused and off":     {caps: everything, vm: onRecord(withDisks(pcapi.VMDisk{Name: "data", Size: "64Ti"}), poweredOff, fourCores), server: server(hasDisks("data=1024"))},
		"disks refused before on":   {caps: everything, vm: onRecord(withDisks(pcapi.VMDisk{Name: "data", Size: "64Ti"})), server: server(hasDisks("data=1024"), stopped)},
		"disks of a suspended one":  {caps: withSuspend, vm: onRecord(twoDisks(), suspended), server: server(hasDisks("data=1024"), asleep)},
		"disks and off":             {caps: everything, vm: onRecord(twoDisks(), poweredOff), server: server(hasDisks("data=1024"))},
		"disks and size and off":    {caps: everything, vm: onRecord(twoDisks(), bigger, poweredOff, hard), server: server(hasDisks("data=1024"), oneGiB)},
		"disk of a type added":      {caps: allOf(), vm: onRecord(typedDisks), server: server(hasDisks("data=1024=slow"))},
		"disk of a type, no types":  {caps: allOf(cloud.DiskTypes), vm: onRecord(typedDisks), server: server(hasDisks("data=1024"))},
		"disks kept":                {caps: allOf(), vm: onRecord(keptDisks), server: server(hasDisks("data=1024 logs=1024==keep"))},
		"disks kept, one added":     {caps: allOf(), vm: onRecord(keptDisks), server: server(hasDisks("logs=1024==keep"))},
		"disks kept, no keepDisks":  {caps: allOf(cloud.KeepDisks), vm: onRecord(keptDisks), server: server(hasDisks("data=1024"))},
		"root disk grown":           {caps: allOf(), vm: onRecord(rooted("20Gi", "fast")), server: server(hasRoot(10<<10, "slow"))},
		"root disk and disks":       {caps: allOf(), vm: onRecord(rooted("20Gi", ""), twoDisks(), bigger), server: server(hasRoot(10<<10, ""), hasDisks("data=1024"))},
		"root disk larger":          {caps: allOf(), vm: onRecord(rooted("20Gi", "")), server: server(hasRoot(20<<10+1, ""))},
		"root disk not shown":       {caps: allOf(), vm: onRecord(rooted("20Gi", "")), server: server()},
		"root disk needs a stop":    {caps: allOf(), vm: onRecord(rooted("20Gi", ""), restartAllowed), server: server(hasRoot(10<<10, "")), before: needsStop},
		"root disk refused":         {caps: allOf(), vm: onRecord(rooted("64Ti", ""), fourCores), server: server(hasRoot(10<<10, ""))},
		"root disk and off":         {caps: allOf(), vm: onRecord(rooted("20Gi", ""), poweredOff), server: server(hasRoot(10<<10, ""))},
		"root disk, no root disk":   {caps: allOf(cloud.WithRootDisk), vm: onRecord(rooted("20Gi", ""), fourCores), server: server()},
		"type of it, no root disk":  {caps: allOf(cloud.WithRootDisk, cloud.DiskTypes), vm: onRecord(rooted("", "fast")), server: server()},
		"disks ignored":             {caps: everything, vm: onRecord(twoDisks()), server: server(hasDisks("data=1024")), before: ignores},
		"disks without the resize":  {caps: without(cloud.Resize), vm: onRecord(twoDisks()), server: server(hasDisks("data=1024"))},
		"disks and size not resize": {caps: without(cloud.Resize), vm: onRecord(twoDisks(), bigger), server: server(hasDisks("data=1024"), oneGiB)},

		"tags added":              {caps: everything, vm: onRecord(tagged), server: server()},
		"tags changed":            {caps: everything, vm: onRecord(tagged), server: server(hadTags)},
		"tags removed":            {caps: everything, vm: onRecord(), server: server(hadTags)},
		"tags of others stay":     {caps: everything, vm: onRecord(tagged), server: server(func(s *cloud.Server) { s.Labels = maps.Clone(s.Labels); s.Labels["other"] = "x" })},
		"tags without labels":     {caps: without(cloud.Labels), vm: onRecord(tagged, fourCores), server: server(unlabelled)},
		"tags and size":           {caps: everything, vm: onRecord(tagged, fourCores), server: server(hadTags)},
		"tags refused":            {caps: everything, vm: onRecord(tagged), server: server(hadTags), before: fails(cloud.Rejected)},
		"tags refused and size":   {caps: everything, vm: onRecord(tagged, fourCores), server: server(hadTags), before: fails(cloud.Rejected)},
		"tags busy and size":      {caps: everything, vm: onRecord(tagged, fourCores), server: server(hadTags), before: fails(cloud.Busy)},
		"tags ignored":            {caps: everything, vm: onRecord(tagged), server: server(hadTags), before: ignores},
		"tags of a suspended one": {caps: withSuspend, vm: onRecord(tagged, suspended), server: server(hadTags, asleep)},
		"tags by an operation":    {caps: operating, vm: onRecord(tagged, fourCores), server: server(hadTags), before: operates},

		"groups":                      {caps: allOf(), vm: onRecord(guarded("web", "ssh")), server: server(reached("default", ""))},
		"groups that others set":      {caps: allOf(), vm: onRecord(), server: server(reached("default", ""))},
		"groups without groups":       {caps: everything, vm: onRecord(guarded("web"), fourCores), server: server()},
		"groups and size and off":     {caps: allOf(), vm: onRecord(guarded("web"), bigger, poweredOff, hard), server: server(oneGiB)},
		"groups refused and off":      {caps: allOf(), vm: onRecord(guarded(cloudfake.NoGroup), poweredOff, hard), server: server()},
		"groups ignored":              {caps: allOf(), vm: onRecord(guarded("web")), server: server(), before: ignores},
		"groups and address and tags": {caps: allOf(), vm: onRecord(guarded("web"), public, tagged), server: server(hadTags)},
		"address":                     {caps: allOf(), vm: onRecord(public), server: server()},
		"address of a suspended one":  {caps: allOf(), vm: onRecord(public, suspended), server: server(asleep)},
		"address by an operation":     {caps: operatingReach, vm: onRecord(public, fourCores), server: server(), before: operates},
		"address that is removed":     {caps: allOf(), vm: onRecord(hasPublic), server: server(reached("", publicAddress))},
		"address without addresses":   {caps: everything, vm: onRecord(public, fourCores), server: server()},

		"on":                               {caps: withSuspend, vm: onRecord(), server: server(stopped)},
		"on from suspended":                {caps: withSuspend, vm: onRecord(), server: server(asleep)},
		"on without power":                 {caps: without(cloud.Power), vm: onRecord(), server: server(stopped)},
		"on ignored":                       {caps: everything, vm: onRecord(), server: server(stopped), before: ignores},
		"on without a host":                {caps: everything, vm: onRecord(), server: server(stopped), before: fails(cloud.NoHost)},
		"off by the guest":                 {caps: withSuspend, vm: onRecord(poweredOff), server: server()},
		"off by a guest that goes on":      {caps: withSuspend, vm: onRecord(poweredOff), server: server(), before: guests(cloudfake.GuestsIgnore), pause: 2 * time.Minute},
		"off by a guest that cannot":       {caps: withSuspend, vm: onRecord(poweredOff), server: server(), before: guests(cloudfake.GuestsUnavailable)},
		"off soft by a guest that goes on": {caps: withSuspend, vm: onRecord(poweredOff, soft), server: server(), before: guests(cloudfake.GuestsIgnore)},
		"off soft by a guest that cannot":  {caps: withSuspend, vm: onRecord(poweredOff, soft), server: server(), before: guests(cloudfake.GuestsUnavailable)},
		"off soft without guests":          {caps: everything, vm: onRecord(poweredOff, soft), server: server()},
		"off hard":                         {caps: withSuspend, vm: onRecord(poweredOff, hard), server: server()},
		"off hard from suspended":          {caps: withSuspend, vm: onRecord(poweredOff, hard), server: server(asleep)},
		"off without guests":               {caps: everything, vm: onRecord(poweredOff), server: server()},
		"off without power":                {caps: without(cloud.Power), vm: onRecord(poweredOff), server: server()},
		"off by an operation":              {caps: operating, vm: onRecord(poweredOff), server: server(), before: operates},
		"off ignored":                      {caps: everything, vm: onRecord(poweredOff), server: server(), before: ignores},
		"suspended":                        {caps: withSuspend, vm: onRecord(suspended), server: server()},
		"suspended from stopped":           {caps: withSuspend, vm: onRecord(suspended), server: server(stopped)},
		"suspended without suspend":        {caps: withGuests, vm: onRecord(suspended), server: server()},
		"suspended ignored":                {caps: withSuspend, vm: onRecord(suspended), server: server(), before: ignores},
		"unmanaged stopped":                {caps: withSuspend, vm: onRecord(unmanaged), server: server(stopped)},
		"restart":                          {caps: withSuspend, vm: onRecord(createdBefore, restartAt(startTime.Add(time.Hour))), server: server()},
		"restart and size":                 {caps: everything, vm: onRecord(createdBefore, restartAt(startTime.Add(time.Hour)), bigger), server: server(oneGiB)},
		"restart and size without resize":  {caps: without(cloud.Resize), vm: onRecord(createdBefore, restartAt(startTime.Add(time.Hour)), bigger), server: server(oneGiB)},

		"all and on":                 {caps: withSuspend, vm: onRecord(whole...), server: server(append(has, stopped)...)},
		"all and on from suspended":  {caps: withSuspend, vm: onRecord(whole...), server: server(append(has, asleep)...)},
		"all and off by the guest":   {caps: withSuspend, vm: onRecord(append(whole, poweredOff)...), server: server(has...)},
		"all and off hard":           {caps: withSuspend, vm: onRecord(append(whole, poweredOff, hard)...), server: server(has...)},
		"all and suspended":          {caps: withSuspend, vm: onRecord(append(whole, suspended)...), server: server(has...)},
		"all by operations":          {caps: operating, vm: onRecord(append(whole, poweredOff)...), server: server(has...), before: operates},
		"all with an allowed stop":   {caps: withSuspend, vm: onRecord(append(whole, restartAllowed)...), server: server(has...), before: needsStop},
		"all with an approval":       {caps: withSuspend, vm: onRecord(append(whole, poweredOff, needsApproval)...), server: server(has...)},
		"all only observed":          {caps: withSuspend, vm: onRecord(append(whole, poweredOff, observing)...), server: server(has...)},
		"all of another owner":       {caps: withSuspend, vm: onRecord(whole...), server: server(append(has, func(s *cloud.Server) { s.Labels[inventory.UIDLabel] = "another" })...)},
		"all and deleted and kept":   {caps: withSuspend, vm: onRecord(append(whole, orphaning, deleted)...), server: server(has...)},
		"labels removed and no tags": {caps: withSuspend, vm: onRecord(orphaning, deleted), server: server()},
		"all and deleted":            {caps: withSuspend, vm: onRecord(append(whole, deleted)...), server: server(has...)},
		"all and a lost answer": {
			caps: withSuspend, vm: onRecord(append(whole, hard, poweredOff)...), server: server(has...),
			before: func(h *harness) {
				h.cloud.Fail(cloudfake.UpdateServer, errReset, true)
				h.cloud.Fail(cloudfake.UpdateServer, errReset, false)
			},
		},
	})
}
