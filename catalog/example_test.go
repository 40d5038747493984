package catalog_test

import (
	"fmt"

	"github.com/zerto-rewind/zerto-rewind/catalog"
)

func ExampleCatalog_ClassifyCall() {
	c, err := catalog.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := map[string]any{"hostname": "vcenter.example.com", "vm_id": "vm-2010"}
	for _, tool := range []string{"mcp__vsphere__power_off_vm", "mcp__vsphere__get_vm_details", "mcp__vsphere__paint_vm"} {
		name, _ := c.ParseToolName(tool)
		r := c.ClassifyCall(name, calls)
		fmt.Println(name, r.Class, r.Targets, r.TargetKnown)
	}
	// Output:
	// vsphere/power_off_vm mutating [{vm_id vm-2010 }] true
	// vsphere/get_vm_details read_only [{vm_id vm-2010 }] true
	// vsphere/paint_vm unknown [] false
}

func ExampleCatalog_WithAlias() {
	c, err := catalog.Default()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Classify(catalog.Name{Server: "lab", Tool: "get_vms"}).Class)
	c, err = c.WithAlias("lab", "ProxmoxMCP-Plus")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Classify(catalog.Name{Server: "lab", Tool: "get_vms"}).Class)
	// Output:
	// unknown
	// read_only
}
