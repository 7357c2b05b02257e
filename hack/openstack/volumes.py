"""The driver of cinder's volumes: they are rows of its database, without data. It needs no device and no module of the kernel.

Extra specs of a volume type change what it does, for tests: with "test:seconds", making a volume of this type takes that long, and with
"test:fails", it fails afterwards.
"""
import time

from cinder import exception
from cinder.volume import driver


class Driver(driver.VolumeDriver):
    VERSION = "1"

    def _update_volume_stats(self):
        self._stats = {
            "volume_backend_name": "rows", "vendor_name": "tests", "driver_version": self.VERSION, "storage_protocol": "none",
            "total_capacity_gb": "infinite", "free_capacity_gb": "infinite", "multiattach": True,
        }

    def check_for_setup_error(self):
        pass

    def create_volume(self, volume):
        specs = volume.volume_type.extra_specs if volume.volume_type else {}
        time.sleep(float(specs.get("test:seconds", 0)))
        if "test:fails" in specs:
            raise exception.VolumeBackendAPIException(data="the volume type has the extra spec test:fails")

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        # Without this, cinder would write the image to a device.
        self.create_volume(volume)
        return {}, True

    def create_cloned_volume(self, volume, src_vref):
        self.create_volume(volume)

    def create_volume_from_snapshot(self, volume, snapshot):
        self.create_volume(volume)

    def delete_volume(self, volume):
        pass

    def extend_volume(self, volume, new_size):
        pass

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        # Nova's driver without guests does nothing with it.
        return {"driver_volume_type": "local", "data": {"access_mode": "rw"}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass
