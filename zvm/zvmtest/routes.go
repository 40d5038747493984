package zvmtest

import "strings"

// routes is the support table: the operations that the server knows.
func routes() []route {
	get := func(pattern string, h handler) route {
		return route{method: "GET", pattern: pattern, access: read, handle: h}
	}
	post := func(pattern string, h handler) route {
		return route{method: "POST", pattern: pattern, access: write, handle: h}
	}
	files := func(method, pattern string, h handler) route {
		return route{method: method, pattern: pattern, access: flr, handle: h}
	}
	never := func(method, pattern string) route {
		return route{method: method, pattern: pattern, access: forbidden}
	}
	insert := post("/v1/vpgs/{id}/checkpoints", handleInsert)
	insert.prepare = captureGuests
	table := []route{
		{method: "POST", pattern: "/auth/realms/{realm}/protocol/openid-connect/token", access: public, handle: handleToken},
		{method: "GET", pattern: "/auth/realms/{realm}/.well-known/openid-configuration", access: public, handle: handleDiscovery},
		{method: "POST", pattern: "/v1/session/add", access: public, handle: handleLegacySession},

		get("/v1/localsite", handleLocalSite),
		get("/v1/peersites", handlePeerSites),
		get("/v1/peersites/{id}", handlePeerSite),
		get("/v1/virtualizationsites", handleVirtualizationSites),
		get("/v1/virtualizationsites/{id}/vms", handleSiteVMs),

		get("/v1/vms", handleVMs),
		get("/v1/vms/{id}", handleVM),
		get("/v1/vms/{id}/pointsInTime", handlePointsInTime),
		get("/v1/vms/{id}/pointsInTime/stats", handlePointsInTimeStats),

		get("/v1/vpgs", handleVPGs),
		get("/v1/vpgs/statuses", handleStatuses),
		get("/v1/vpgs/substatuses", handleSubStatuses),
		get("/v1/vpgs/{id}", handleVPG),
		get("/v1/vpgs/{id}/checkpoints", handleCheckpoints),
		get("/v1/vpgs/{id}/checkpoints/stats", handleCheckpointStats),
		insert,
		post("/v1/vpgs/{id}/FailoverTest", handleTestStart),
		post("/v1/vpgs/{id}/FailoverTestStop", handleTestStop),
		post("/v1/vpgs/{id}/CloneStart", handleCloneStart),
		post("/v1/vpgs/{id}/CloneAbort", handleCloneAbort),

		get("/v1/tasks", handleTasks),
		get("/v1/tasks/types", handleTaskTypes),
		get("/v1/tasks/{id}", handleTask),
		get("/v1/events", handleEvents),

		files("POST", "/v1/flrs", handleMount),
		files("GET", "/v1/flrs", handleMounts),
		files("GET", "/v1/flrs/{id}", handleMountStatus),
		files("DELETE", "/v1/flrs/{id}", handleUnmount),
		files("POST", "/v1/flrs/{id}/browse", handleBrowse),
		files("POST", "/v1/flrs/{id}/download", handleDownload),
		{method: "GET", pattern: "/v1/downloads/{link}", access: linkOnly, handle: handleLink},

		get("/v1/serverDateTime/serverDateTimeUtc", handleTimeUTC),
		get("/v1/serverDateTime/serverDateTimeLocal", handleTimeLocal),
		get("/v1/serverDateTime/dateTimeArgument", handleDateArgument),
		get("/v1/encryptionDetection/state", handleEncryptionState),
		get("/v1/encryptionDetection/suspected/vpgs", handleSuspectedVPGs),
		get("/v1/encryptionDetection/suspected/vms", handleSuspectedVMs),

		never("POST", "/v1/vpgs/{id}/Failover"),
		never("POST", "/v1/vpgs/{id}/FailoverCommit"),
		never("POST", "/v1/vpgs/{id}/FailoverRollback"),
		never("POST", "/v1/vpgs/{id}/Move"),
		never("POST", "/v1/vpgs/{id}/MoveCommit"),
		never("POST", "/v1/vpgs/{id}/moveRollback"),
		never("POST", "/v1/vpgs/{id}/pause"),
		never("POST", "/v1/vpgs/{id}/resume"),
		never("POST", "/v1/vpgs/{id}/forcesync"),
		never("DELETE", "/v1/vpgs/{id}"),
		never("POST", "/v1/vms/{id}/Restore"),
		never("POST", "/v1/vms/{id}/RestoreCommit"),
		never("POST", "/v1/vms/{id}/RestoreRollback"),
		never("POST", "/v1/vpgSettings"),
		never("POST", "/v1/vpgSettings/import"),
		never("POST", "/v1/vpgSettings/{id}/commit"),
		never("PUT", "/v1/vpgSettings/{id}"),
		never("DELETE", "/v1/vpgSettings/{id}"),
		never("POST", "/v1/ltr/restore/vm"),
	}
	for _, part := range []string{
		"basic", "bootgroup", "journal", "ltr", "networks", "recovery", "scratch", "scripting", "vms/{vm}",
	} {
		table = append(table, never("PUT", "/v1/vpgSettings/{id}/"+part), never("DELETE", "/v1/vpgSettings/{id}/"+part))
	}
	table = append(table,
		never("POST", "/v1/vpgSettings/copyVpgSettings"),
		never("POST", "/v1/vpgSettings/{id}/ltr"),
		never("POST", "/v1/vpgSettings/{id}/vms"),
		never("PUT", "/v1/vpgSettings/{id}/vms/{vm}/volumes/{volume}"),
		never("PUT", "/v1/vpgSettings/{id}/vms/{vm}/nics/{nic}"),
		never("DELETE", "/v1/vpgSettings/{id}/vms/{vm}/nics/{nic}"),
	)
	for i := range table {
		table[i].want = strings.Split(strings.TrimPrefix(table[i].pattern, "/"), "/")
	}
	return table
}
