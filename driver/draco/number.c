// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers of regions and windows, as assigned by the device. If it assigned a
 * number twice, one user could destroy what belongs to another. Called by mr.c
 * and window.c.
 */
#include "controller.h"
#include "draco.h"
#include "exec.h"
#include "number.h"

/**
 * draco_number_claim() - record the number of a new object
 * @dd:      device
 * @used:    numbers in use
 * @number:  that the device has assigned
 * @epoch:   READ_ONCE(dd->epoch) from before the device was asked
 * @destroy: DRACO_ADM_* that destroys such an object
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOMEM, the object has been destroyed again; -ENODEV if the
 * controller was stopped, perhaps because the number was already in use
 */
int draco_number_claim(struct draco_dev *dd, struct xarray *used, u32 number,
		       u32 epoch, u8 destroy)
{
	int ret;

	/* Objects from before a stop of the controller are gone.
	 * draco_tables_clear() runs after the epoch has changed: an entry made
	 * before is removed there, a later one is recognised here.
	 */
	xa_lock(used);
	ret = __xa_insert(used, number, xa_mk_value(0), GFP_KERNEL);
	if (!ret && READ_ONCE(dd->epoch) != epoch) {
		__xa_erase(used, number);
		ret = -ENODEV;
	}
	xa_unlock(used);

	if (ret == -EBUSY)
		return draco_reset_sync(dd, epoch,
					"it returned a number that is in use");
	if (ret == -ENOMEM && draco_exec_destroy(dd, destroy, number))
		return -ENODEV;
	return ret;
}

/**
 * draco_number_destroy() - destroy an object and release its number
 * @dd:      device
 * @used:    numbers in use
 * @number:  of the object
 * @destroy: DRACO_ADM_* that destroys it
 *
 * Context: Process; sleeps, but does not allocate memory.
 * Return: 0 or -ENODEV; the device no longer accesses memory for it
 */
int draco_number_destroy(struct draco_dev *dd, struct xarray *used, u32 number,
			 u8 destroy)
{
	/* First, as the device may assign the number again right afterwards. */
	xa_erase(used, number);
	return draco_exec_destroy(dd, destroy, number);
}
