// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers that the device has given to regions and windows. A number given
 * twice would let one user destroy what is another's. Used by mr.c and window.c.
 */
#include "draco.h"
#include "exec.h"
#include "number.h"

/**
 * draco_number_take() - the device has made something
 * @dd:      device
 * @used:    numbers in use
 * @number:  that it gave
 * @epoch:   READ_ONCE(dd->epoch) before it was asked
 * @destroy: DRACO_ADM_* that undoes it
 *
 * Return: 0; -ENOMEM, the device has forgotten it again; -ENODEV if the
 * controller was stopped, also because the number is in use
 */
int draco_number_take(struct draco_dev *dd, struct xarray *used, u32 number,
		      u32 epoch, u8 destroy)
{
	int ret;

	/* Whatever was made before the controller was stopped is gone:
	 * draco_tables_forget() runs after the epoch has changed, so an entry
	 * made before that is removed there, and a later one is seen to be late
	 * here.
	 */
	xa_lock(used);
	ret = __xa_insert(used, number, xa_mk_value(0), GFP_KERNEL);
	if (!ret && READ_ONCE(dd->epoch) != epoch) {
		__xa_erase(used, number);
		ret = -ENODEV;
	}
	xa_unlock(used);

	if (ret == -EBUSY)
		return draco_kill(dd, epoch, "it returned a number that is in use");
	if (ret == -ENOMEM && draco_exec_destroy(dd, destroy, number))
		return -ENODEV;
	return ret;
}

/**
 * draco_number_destroy() - have the device forget what has a number
 * @dd:      device
 * @used:    numbers in use
 * @number:  of what is to be forgotten
 * @destroy: DRACO_ADM_* for that
 *
 * Return: 0 or -ENODEV; the device does not access memory for it any more
 */
int draco_number_destroy(struct draco_dev *dd, struct xarray *used, u32 number,
			 u8 destroy)
{
	/* First, as it may be given to somebody else right afterwards. */
	xa_erase(used, number);
	return draco_exec_destroy(dd, destroy, number);
}
