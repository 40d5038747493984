package catalog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

// row is one line of the survey of tools (hooks 5), or a part of it where its tools differ.
type row struct {
	number  int
	server  string // empty for built-ins of hosts
	tools   string
	class   catalog.Class
	kind    catalog.Kind
	args    string // of a usual call
	targets string // "arg=value" of that call; known unless it ends in "?", which also stands for none
}

const (
	unknown  = catalog.Unknown
	readOnly = catalog.ReadOnly
	mutating = catalog.Mutating
	ordinary = catalog.Ordinary
	makes    = catalog.Checkpoint
	undoes   = catalog.Undo
)

var survey = []row{
	{1, "ssh-mcp", "run-command", mutating, ordinary, `{"command":"x","profile":"web01"}`, "profile=web01"},
	{1, "ssh-mcp", "run-command", mutating, ordinary, `{"command":"x"}`, "?"},
	{1, "ssh-mcp", "run-command", mutating, ordinary, `{"command":"x","profile":"web01","session":"s1"}`, "profile=web01?"},
	{2, "ssh-mcp", "privileged-command", mutating, ordinary, `{"command":"x","profile":"web01"}`, "profile=web01"},
	{3, "ssh-mcp", "read-command", readOnly, ordinary, `{"command":"uptime","profile":"web01"}`, "profile=web01"},
	{4, "ssh-mcp", "signal-process", mutating, ordinary, `{"profile":"web01","pid":12,"signal":"TERM"}`, "profile=web01?"},
	{5, "ssh-mcp", "sftp-upload", mutating, ordinary, `{"profile":"web01","remotePath":"/x"}`, "profile=web01"},
	{5, "ssh-mcp", "sftp-download", readOnly, ordinary, `{"profile":"web01","remotePath":"/x"}`, "profile=web01"},
	{6, "ssh-mcp", "list-connections list-sessions", readOnly, ordinary, `{}`, "?"},
	{7, "ssh-mcp-server", "execute-command", mutating, ordinary, `{"cmdString":"x","connectionName":"web01"}`, "connectionName=web01"},
	{7, "ssh-mcp-server", "execute-command", mutating, ordinary, `{"cmdString":"x"}`, "?"},
	{8, "ssh-mcp-server", "upload", mutating, ordinary, `{"connectionName":"web01"}`, "connectionName=web01"},
	{8, "ssh-mcp-server", "download list-servers", readOnly, ordinary, `{}`, "?"},
	{9, "mcp-ssh-manager", "ssh_execute ssh_execute_sudo", mutating, ordinary, `{"server":"web01","command":"x"}`, "server=web01"},
	{10, "mcp-ssh-manager", "ssh_deploy ssh_upload", mutating, ordinary, `{"server":"web01","remotePath":"/x"}`, "server=web01"},
	{11, "mcp-ssh-manager", "ssh_download", readOnly, ordinary, `{"server":"web01"}`, "server=web01"},
	{11, "mcp-ssh-manager", "ssh_list_servers", readOnly, ordinary, `{}`, "?"},
	{12, "mcp-ssh-manager", "ssh_alias ssh_profile ssh_hooks ssh_command_alias", readOnly, ordinary, `{"action":"list"}`, "?"},
	{12, "mcp-ssh-manager", "ssh_alias ssh_profile ssh_hooks ssh_command_alias", mutating, ordinary, `{"action":"switch"}`, "?"},
	{12, "mcp-ssh-manager", "ssh_alias ssh_profile ssh_hooks ssh_command_alias", unknown, ordinary, `{"action":"export"}`, "?"},
	{13, "ProxmoxMCP-Plus", "execute_vm_command", mutating, ordinary, `{"node":"pve1","vmid":"100","command":"x"}`, "vmid=100"},
	{14, "ProxmoxMCP-Plus", "start_vm stop_vm shutdown_vm reset_vm delete_vm", mutating, ordinary, `{"node":"pve1","vmid":"100"}`, "vmid=100"},
	{15, "ProxmoxMCP-Plus", "create_vm", mutating, ordinary, `{"node":"pve1","vmid":"101","name":"web02"}`, "vmid=101"},
	{15, "ProxmoxMCP-Plus", "clone_vm", mutating, ordinary, `{"node":"pve1","source_vmid":"100","target_vmid":"101"}`, "target_vmid=101"},
	{16, "ProxmoxMCP-Plus", "create_snapshot", mutating, makes, `{"node":"pve1","vmid":"100","snapname":"s"}`, "vmid=100"},
	{17, "ProxmoxMCP-Plus", "delete_snapshot rollback_snapshot", mutating, undoes, `{"node":"pve1","vmid":"100","snapname":"s"}`, "vmid=100"},
	{18, "ProxmoxMCP-Plus", "list_snapshots get_vms get_nodes get_node_status get_container_config list_backups", readOnly, ordinary, `{"node":"pve1"}`, "?"},
	{19, "ProxmoxMCP-Plus", "create_backup", mutating, makes, `{"node":"pve1","vmid":"100"}`, "vmid=100"},
	{19, "ProxmoxMCP-Plus", "restore_backup", mutating, ordinary, `{"archive":"a","vmid":"100"}`, "vmid=100"},
	{19, "ProxmoxMCP-Plus", "delete_backup", mutating, undoes, `{"storage":"s","volid":"v"}`, "?"},
	{20, "ProxmoxMCP-Plus", "execute_container_command start_container stop_container restart_container delete_container update_container_resources", mutating, ordinary, `{"selector":"123"}`, "selector=123"},
	{20, "ProxmoxMCP-Plus", "stop_container", mutating, ordinary, `{"selector":"pve1:123, pve2/web"}`, "selector=pve1/123 selector=pve2/web"},
	{21, "ProxmoxMCP-Plus", "retry_job cancel_job", mutating, ordinary, `{"job_id":"7"}`, "?"},
	{22, "esxi-mcp-server", "createVM deleteVM powerOn powerOff", mutating, ordinary, `{"name":"web01"}`, "name=web01"},
	{23, "esxi-mcp-server", "cloneVM", mutating, ordinary, `{"template_name":"t","new_name":"web02"}`, "new_name=web02"},
	{23, "esxi-mcp-server", "listVMs", readOnly, ordinary, `{}`, "?"},
	{24, "vsphere-mcp-server", "power_on_vm power_off_vm", mutating, ordinary, `{"hostname":"vcenter.example.com","vm_id":"vm-2010"}`, "vm_id=vm-2010"},
	{24, "vsphere-mcp-server", "power_off_vm", mutating, ordinary, `{"hostname":"vcenter.example.com"}`, "?"},
	{25, "vsphere-mcp-server", "get_vm_details", readOnly, ordinary, `{"hostname":"vcenter.example.com","vm_id":"vm-2010"}`, "vm_id=vm-2010"},
	{25, "vsphere-mcp-server", "list_vms list_hosts get_host_details list_datacenters get_datacenter_details list_datastores get_datastore_details list_folders get_folder_details list_networks get_network_details list_vlans", readOnly, ordinary, `{"hostname":"vcenter.example.com"}`, "?"},
	{26, "win-mcp-server", "win_execute_powershell execute_powershell", mutating, ordinary, `{"hostname":"win01","command":"x"}`, "hostname=win01"},
	{27, "win-mcp-server", "win_get_system_info win_get_running_services win_get_disk_space", readOnly, ordinary, `{"hostname":"win01"}`, "hostname=win01"},
	{28, "mcp-ansible", "ansible-playbook project-run-playbook ansible-test-idempotence", mutating, ordinary, `{"playbook_path":"/p.yml","limit":"web01.example.com"}`, "limit=web01.example.com"},
	{28, "mcp-ansible", "ansible-playbook project-run-playbook", mutating, ordinary, `{"playbook_path":"/p.yml","check":true}`, "?"},
	{29, "mcp-ansible", "ansible-task", unknown, ordinary, `{"host_pattern":"web*","module":"shell","args":"x"}`, "?"},
	{29, "mcp-ansible", "ansible-task", readOnly, ordinary, `{"host_pattern":"10.0.0.9","module":"setup"}`, "host_pattern=10.0.0.9"},
	{29, "mcp-ansible", "ansible-task", readOnly, ordinary, `{"host_pattern":"10.0.0.9","module":"copy","check":true}`, "host_pattern=10.0.0.9"},
	{30, "mcp-ansible", "ansible-remote-command", mutating, ordinary, `{"host_pattern":"web01.example.com,10.0.0.9","command":"x"}`, "host_pattern=web01.example.com host_pattern=10.0.0.9"},
	{31, "mcp-ansible", "ansible-service-manager", readOnly, ordinary, `{"host_pattern":"10.0.0.9","service_name":"nginx","action":"status"}`, "host_pattern=10.0.0.9"},
	{31, "mcp-ansible", "ansible-service-manager", mutating, ordinary, `{"host_pattern":"10.0.0.9","service_name":"nginx","action":"restart"}`, "host_pattern=10.0.0.9"},
	{32, "mcp-ansible", "ansible-role", mutating, ordinary, `{"role_name":"r"}`, "?"},
	{32, "mcp-ansible", "ansible-role", mutating, ordinary, `{"role_name":"r","hosts":"all"}`, "?"},
	{33, "mcp-ansible", "ansible-auto-heal", unknown, ordinary, `{"host_pattern":"10.0.0.9"}`, "host_pattern=10.0.0.9"},
	{33, "mcp-ansible", "ansible-auto-heal", readOnly, ordinary, `{"host_pattern":"10.0.0.9","dry_run":true}`, "host_pattern=10.0.0.9"},
	{33, "mcp-ansible", "ansible-auto-heal", mutating, ordinary, `{"host_pattern":"10.0.0.9","dry_run":false}`, "host_pattern=10.0.0.9"},
	{34, "mcp-ansible", "ansible-ping ansible-gather-facts ansible-fetch-logs", readOnly, ordinary, `{"host_pattern":"all"}`, "?"},
	{34, "mcp-ansible", "ansible-diagnose-host inventory-find-host", readOnly, ordinary, `{"host":"web01.example.com"}`, "host=web01.example.com"},
	{34, "mcp-ansible", "ansible-inventory inventory-parse inventory-graph inventory-diff validate-playbook", readOnly, ordinary, `{}`, "?"},
	{35, "mcp-ansible", "ansible-network-matrix", readOnly, ordinary, `{"host_patterns":["a.example.com"],"target_hosts":["10.0.0.9"]}`, "host_patterns=a.example.com target_hosts=10.0.0.9"},
	{36, "kubernetes-mcp-server", "pods_exec", mutating, ordinary, `{"name":"p","namespace":"n","command":["x"]}`, "?"},
	{37, "kubernetes-mcp-server", "pods_delete pods_run resources_create_or_update resources_delete helm_install helm_uninstall", mutating, ordinary, `{"name":"p","namespace":"n"}`, "?"},
	{38, "kubernetes-mcp-server", "resources_scale", readOnly, ordinary, `{"kind":"Deployment","name":"d"}`, "?"},
	{38, "kubernetes-mcp-server", "resources_scale", mutating, ordinary, `{"kind":"Deployment","name":"d","scale":0}`, "?"},
	{39, "kubernetes-mcp-server", "pods_list pods_get pods_log pods_top resources_list resources_get events_list namespaces_list nodes_log nodes_top configuration_view", readOnly, ordinary, `{}`, "?"},
	{40, "mcp-server-kubernetes", "kubectl_apply kubectl_create kubectl_delete kubectl_patch kubectl_scale kubectl_rollout install_helm_chart upgrade_helm_chart uninstall_helm_chart", mutating, ordinary, `{"name":"p"}`, "?"},
	{41, "mcp-server-kubernetes", "kubectl_generic", readOnly, ordinary, `{"command":"get","args":["pods"]}`, "?"},
	{41, "mcp-server-kubernetes", "kubectl_generic", mutating, ordinary, `{"command":"delete","args":["pod","p"]}`, "?"},
	{41, "mcp-server-kubernetes", "kubectl_generic", unknown, ordinary, `{"command":"get; kubectl delete"}`, "?"},
	{42, "mcp-server-kubernetes", "node_management", mutating, ordinary, `{"operation":"drain","nodeName":"node1","dryRun":true}`, "nodeName=node1"},
	{43, "mcp-server-kubernetes", "exec_in_pod", mutating, ordinary, `{"name":"p","command":["x"]}`, "?"},
	{44, "mcp-server-kubernetes", "kubectl_get kubectl_describe kubectl_logs explain_resource list_api_resources ping", readOnly, ordinary, `{}`, "?"},
	{44, "mcp-server-kubernetes", "kubectl_context", readOnly, ordinary, `{"operation":"list"}`, "?"},
	{44, "mcp-server-kubernetes", "kubectl_context", mutating, ordinary, `{"operation":"set","name":"prod"}`, "?"},
	{44, "mcp-server-kubernetes", "kubectl_context", unknown, ordinary, `{}`, "?"},
	{45, "DesktopCommanderMCP", "start_process", unknown, ordinary, `{"command":"ssh web01 reboot"}`, "?"},
	{46, "DesktopCommanderMCP", "interact_with_process", mutating, ordinary, `{"pid":12,"input":"reboot"}`, "?"},
	{47, "DesktopCommanderMCP", "write_file edit_block move_file set_config_value", mutating, ordinary, `{"path":"/x"}`, "?"},
	{47, "DesktopCommanderMCP", "kill_process force_terminate", mutating, ordinary, `{"pid":12}`, "?"},
	{48, "DesktopCommanderMCP", "read_file list_directory start_search list_processes get_config read_process_output", readOnly, ordinary, `{}`, "?"},
	{49, "linux-mcp-server", "get_system_information list_services get_service_logs get_journal_logs read_log_file list_processes get_network_interfaces get_network_connections get_listening_ports read_file", readOnly, ordinary, `{"host":"web01"}`, "host=web01"},
	{49, "linux-mcp-server", "list_services", readOnly, ordinary, `{"host":null}`, "?"},
	{50, "linux-mcp-server", "validate_script", readOnly, ordinary, `{"host":"web01","script":"x","readonly":true}`, "host=web01"},
	{51, "linux-mcp-server", "run_script", mutating, ordinary, `{"token":"t"}`, "?"},
	{52, "linux-mcp-server", "run_script_with_confirmation run_script_interactive", mutating, ordinary, `{"host":"web01","script":"x","readonly":true}`, "host=web01"},
	{52, "linux-mcp-server", "run_script_with_confirmation", mutating, ordinary, `{"host":"web01","script":"x","token":"t"}`, "host=web01?"},
	{53, "Windows-MCP", "Powershell-Tool", mutating, ordinary, `{"command":"Invoke-Command -ComputerName web01 {}"}`, "?"},
	{54, "Windows-MCP", "Launch-Tool Click-Tool Type-Tool Shortcut-Tool Key-Tool Drag-Tool", mutating, ordinary, `{}`, "?"},
	{55, "Windows-MCP", "State-Tool Scrape-Tool Wait-Tool", readOnly, ordinary, `{}`, "?"},
	{56, "mcp-ssh-bridge", "ssh_hyperv_vm_start ssh_hyperv_vm_stop", mutating, ordinary, `{"host":"hv1","name":"web01"}`, "name=web01"},
	{56, "mcp-ssh-bridge", "ssh_reg_set ssh_reg_delete ssh_win_update_install ssh_win_update_reboot", mutating, ordinary, `{"host":"web01"}`, "host=web01"},
	{57, "mcp-ssh-bridge", "ssh_hyperv_snapshot_create", mutating, makes, `{"host":"hv1","name":"web01"}`, "name=web01"},
	{57, "mcp-ssh-bridge", "ssh_hyperv_vm_list ssh_hyperv_vm_info ssh_hyperv_snapshot_list", readOnly, ordinary, `{"host":"hv1"}`, "?"},
	{58, "mcp-server-docker", "run_container create_container recreate_container start_container stop_container remove_container build_image pull_image push_image remove_image create_network remove_network create_volume remove_volume", mutating, ordinary, `{"container_id":"c"}`, "?"},
	{59, "mcp-server-docker", "list_containers fetch_container_logs list_images list_networks list_volumes", readOnly, ordinary, `{}`, "?"},
	{60, "terraform-mcp-server", "create_run action_run create_workspace create_no_code_workspace create_workspace_variable create_workspace_tags delete_workspace_safely delete_project force_unlock_workspace", mutating, ordinary, `{"workspace_id":"ws-1"}`, "?"},
	{61, "terraform-mcp-server", "search_providers search_modules search_policies search_private_providers search_private_modules get_provider_details get_latest_provider_version get_provider_capabilities get_module_details get_latest_module_version get_policy_details get_private_provider_details get_private_module_details get_token_permissions get_project get_team get_workspace_details get_run_details get_run_comments get_plan_details get_plan_logs get_plan_json_output get_apply_details get_apply_logs get_stack_details get_state_version", readOnly, ordinary, `{}`, "?"},
	{61, "terraform-mcp-server", "get_sentinel_mock", mutating, ordinary, `{}`, "?"},
	{62, "", "Bash PowerShell run_shell_command Shell run_command run_in_terminal Execute", unknown, ordinary, `{"command":"ssh web01 reboot"}`, "?"},
}

func TestEveryRowOfTheSurvey(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	rows := map[int]bool{}
	covered := map[catalog.Name]bool{}
	for _, r := range survey {
		rows[r.number] = true
		for _, tool := range strings.Fields(r.tools) {
			name := catalog.Name{Server: r.server, Tool: tool, BuiltIn: r.server == ""}
			covered[name] = true
			got := c.ClassifyCall(name, decode(t, r.args))
			want := catalog.Verdict{Class: r.class, Kind: r.kind}
			if diff := cmp.Diff(want, got.Verdict); diff != "" {
				t.Errorf("row %d, %s%s: verdict (-want +got):\n%s", r.number, name, r.args, diff)
			}
			if got := spell(got); got != r.targets {
				t.Errorf("row %d, %s%s: targets %q, want %q", r.number, name, r.args, got, r.targets)
			}
			if got.Reason == "" || got.TargetKnown == (got.TargetProblem != "") {
				t.Errorf("row %d, %s: reason %q, target problem %q", r.number, name, got.Reason, got.TargetProblem)
			}
		}
	}
	if len(rows) != 62 {
		t.Errorf("%d rows of the survey are here, want all 62", len(rows))
	}
	for e := range c.Entries() {
		name := catalog.Name{Server: e.Server, Tool: e.Tool, BuiltIn: e.BuiltIn}
		if e.Server != "zerto-rewind" && !covered[name] && !e.BuiltIn {
			t.Errorf("%s is in the data and in no row of the survey", name)
		}
		if e.Source == "" {
			t.Errorf("%s has no source", name)
		}
	}
}

func TestOwnTools(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	want := map[string]catalog.Verdict{
		"zerto_guard_before_mutate": {Class: mutating, Kind: makes},
		"zerto_start_failover_test": {Class: mutating},
		"zerto_stop_failover_test":  {Class: mutating},
		"zerto_clone":               {Class: mutating},
		"zerto_sweep":               {Class: mutating},
		"zerto_find_protection":     {Class: readOnly},
		"zerto_check_tool":          {Class: readOnly},
		"zerto_list_guards":         {Class: readOnly},
		"zerto_verify_guard":        {Class: readOnly},
		"zerto_browse_checkpoint":   {Class: readOnly},
		"zerto_diff":                {Class: readOnly},
		"zerto_get_task":            {Class: readOnly},
		"zerto_recover_file":        {Class: readOnly},
		"zerto_add_mutating_tool":   {Class: readOnly},
	}
	got := map[string]catalog.Verdict{}
	for e := range c.Entries() {
		if e.Server != "zerto-rewind" {
			continue
		}
		for _, server := range append(e.Aliases, e.Server, "ZERTO_REWIND") {
			got[e.Tool] = c.Classify(catalog.Name{Server: server, Tool: e.Tool})
			if got[e.Tool] != want[e.Tool] {
				t.Errorf("%s/%s: %+v, want %+v", server, e.Tool, got[e.Tool], want[e.Tool])
			}
		}
		if budget := 64 - len("mcp__zerto-rewind__"); len(e.Tool) > budget {
			t.Errorf("%s has %d bytes; with the prefix of a host at most %d fit", e.Tool, len(e.Tool), budget)
		}
		if r := c.ClassifyCall(catalog.Name{Server: "zerto", Tool: e.Tool}, map[string]any{"vm": "web01"}); r.TargetKnown {
			t.Errorf("%s: a guard of web01 would let the call pass without a human", e.Tool)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("own tools (-want +got):\n%s", diff)
	}
}

// hostTools are the tools of agent hosts themselves, each in the words of its host.
var hostTools = []struct {
	host, tools string
	verdict     catalog.Verdict
	command     string // argument with a command line
}{
	{"Claude Code", "Bash PowerShell Monitor", catalog.Verdict{}, "command"},
	{"Claude Code", "Read Grep Glob LS LSP NotebookRead BashOutput TaskOutput TodoRead TodoWrite TaskCreate TaskGet TaskList TaskUpdate AskUserQuestion EnterPlanMode ExitPlanMode Skill SlashCommand ToolSearch ListMcpResourcesTool CronList CronDelete", readLocal, ""},
	{"Claude Code", "Task Agent SendMessage TeamCreate TeamDelete CronCreate", readLocal, ""},
	{"Claude Code", "Edit MultiEdit Write NotebookEdit EnterWorktree ExitWorktree KillShell KillBash TaskStop", changeLocal, ""},
	{"Claude Code", "WebFetch WebSearch ReadMcpResourceTool", catalog.Verdict{Class: readOnly}, ""},
	{"Codex", "shell local_shell shell_command", catalog.Verdict{}, "command"},
	{"Codex", "exec_command", catalog.Verdict{}, "cmd"},
	{"Codex", "write_stdin", catalog.Verdict{Class: mutating}, ""},
	{"Codex", "apply_patch", changeLocal, ""},
	{"Codex", "update_plan view_image list_mcp_resources list_mcp_resource_templates request_user_input spawn_agent send_input wait_agent close_agent resume_agent", readLocal, ""},
	{"Codex", "read_mcp_resource", catalog.Verdict{Class: readOnly}, ""},
	{"Cursor", "Shell", catalog.Verdict{}, "command"},
	{"Cursor", "Read Grep Task", readLocal, ""},
	{"Cursor", "Write Delete", changeLocal, ""},
	{"Gemini CLI", "run_shell_command", catalog.Verdict{}, "command"},
	{"Gemini CLI", "read_file read_many_files list_directory glob grep_search search_file_content get_internal_docs write_todos ask_user enter_plan_mode exit_plan_mode activate_skill update_topic", readLocal, ""},
	{"Gemini CLI", "write_file replace save_memory", changeLocal, ""},
	{"Gemini CLI", "google_web_search web_fetch", catalog.Verdict{Class: readOnly}, ""},
	{"Copilot CLI", "bash powershell", catalog.Verdict{}, "command"},
	{"Copilot CLI", "view read_bash read_powershell report_intent glob grep task", readLocal, ""},
	{"Copilot CLI", "create edit str_replace_editor stop_bash stop_powershell", changeLocal, ""},
	{"Copilot CLI", "write_bash write_powershell", catalog.Verdict{Class: mutating}, ""},
	{"VS Code", "run_in_terminal", catalog.Verdict{}, "command"},
	{"VS Code", "run_task create_and_run_task run_notebook_cell run_vscode_command runTests run_tests run_agent_script install_extension", catalog.Verdict{}, ""},
	{"VS Code", "semantic_search get_vscode_api test_failure file_search list_dir get_errors get_changed_files read_project_structure search_workspace_symbols list_code_usages copilot_getNotebookSummary read_notebook_cell_output test_search get_project_setup_info get_search_view_results get_doc_info get_terminal_output terminal_selection terminal_last_command get_task_output manage_todo_list vscode_get_confirmation runSubagent", readLocal, ""},
	{"VS Code", "insert_edit_into_file create_file edit_file replace_string_in_file multi_replace_string_in_file edit_notebook_file create_directory create_new_jupyter_notebook create_new_workspace memory update_user_preferences", changeLocal, ""},
	{"VS Code", "fetch_webpage github_repo open_simple_browser", catalog.Verdict{Class: readOnly}, ""},
	{"Windsurf", "run_command", catalog.Verdict{}, "command_line"},
	{"Windsurf", "view_file find_by_name codebase_search view_code_item read_terminal command_status", readLocal, ""},
	{"Windsurf", "replace_file_content create_memory edit_notebook", changeLocal, ""},
	{"Windsurf", "search_web read_url_content", catalog.Verdict{Class: readOnly}, ""},
	{"Cline", "execute_command attempt_completion", catalog.Verdict{}, "command"},
	{"Cline", "use_mcp_tool browser_action", catalog.Verdict{}, ""},
	{"Cline", "search_files list_files list_code_definition_names ask_followup_question plan_mode_respond act_mode_respond focus_chain condense summarize_task load_mcp_documentation generate_explanation new_task search_subagent", readLocal, ""},
	{"Cline", "write_to_file replace_in_file new_rule", changeLocal, ""},
	{"Cline", "web_search access_mcp_resource", catalog.Verdict{Class: readOnly}, ""},
	{"Factory Droid", "Execute", catalog.Verdict{}, "command"},
	{"none", "Teleport", catalog.Verdict{}, ""},
}

var (
	readLocal   = catalog.Verdict{Class: readOnly, Scope: catalog.Local}
	changeLocal = catalog.Verdict{Class: mutating, Scope: catalog.Local}
)

func TestBuiltInToolsOfHosts(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	covered := map[string]bool{}
	for _, row := range hostTools {
		for _, tool := range strings.Fields(row.tools) {
			covered[strings.ToLower(tool)] = true
			name := catalog.Name{Tool: tool, BuiltIn: true}
			r := c.ClassifyCall(name, nil)
			if r.Verdict != row.verdict || c.Classify(name) != row.verdict {
				t.Errorf("%s: %s is %+v, want %+v", row.host, tool, r.Verdict, row.verdict)
			}
			if row.command != "" {
				if line, ok := r.Entry.CommandLine(map[string]any{row.command: "ls"}); !ok || line != "ls" {
					t.Errorf("%s: the command line of %s is not found in argument %s", row.host, tool, row.command)
				}
			}
			for _, name := range []catalog.Name{
				{Tool: tool}, {Server: "someones", Tool: tool}, {Server: "proxmox", Tool: tool, BuiltIn: true},
			} {
				if got := c.Classify(name); got.Safe() {
					t.Errorf("%+v is trusted like a tool of the host: %+v", name, got)
				}
			}
		}
	}
	for e := range c.Entries() {
		if e.BuiltIn && !covered[strings.ToLower(e.Tool)] {
			t.Errorf("%s is in the data, and no host is said to have it", e.Tool)
		}
	}
}

func TestATaskEndsWithoutAQuestionUnlessItRunsACommand(t *testing.T) {
	t.Parallel()
	c := builtInData(t)
	name := catalog.Name{Tool: "attempt_completion", BuiltIn: true}
	for args, want := range map[string]catalog.Class{
		`{"result":"done"}`: readOnly, `{"result":"done","command":"ssh web01 reboot"}`: unknown, `{"Command":"x"}`: unknown, `{"command":null}`: unknown,
	} {
		if got := c.ClassifyCall(name, decode(t, args)); got.Class != want {
			t.Errorf("%s: %s, want %s", args, got.Class, want)
		}
	}
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var args map[string]any
	if err := d.Decode(&args); err != nil {
		t.Fatalf("arguments %s: %v", text, err)
	}
	return args
}

func spell(r catalog.Result) string {
	var words []string
	for _, target := range r.Targets {
		value := target.Value
		if target.Node != "" {
			value = target.Node + "/" + value
		}
		words = append(words, fmt.Sprintf("%s=%s", target.Arg, value))
	}
	text := strings.Join(slices.Clip(words), " ")
	if !r.TargetKnown {
		text += "?"
	}
	return text
}

// TestBuiltInDataPassesEveryCheck stands for the checks that the program leaves out when it reads its own data.
func TestBuiltInDataPassesEveryCheck(t *testing.T) {
	t.Parallel()
	checked, err := catalog.Load(catalog.DefaultData)
	if err != nil {
		t.Fatal(err)
	}
	want, got := slices.Collect(checked.Entries()), slices.Collect(builtInData(t).Entries())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the built-in entries, as checked and as read (-want +got):\n%s", diff)
	}
}
